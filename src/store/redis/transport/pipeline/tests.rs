//! Callers, and a server that the test plays.

use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio::io::duplex;

use super::*;

async fn pair() -> (Pipeline, DuplexStream) {
    let (near, far) = duplex(1 << 20);
    let (pipeline, driver) = Pipeline::over(near);
    tokio::spawn(driver);
    tokio::task::yield_now().await;
    (pipeline, far)
}

fn echo(number: i64) -> Cmd {
    let mut command = redis::cmd("ECHO");
    command.arg(number);
    command
}

async fn expect(server: &mut DuplexStream, numbers: std::ops::Range<i64>) {
    let mut expected = Vec::new();
    numbers.for_each(|number| echo(number).write_packed_command(&mut expected));
    let mut sent = vec![0; expected.len()];
    server.read_exact(&mut sent).await.expect("commands");
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn callers_share_a_connection_and_each_gets_its_own_answer() {
    let (pipeline, mut server) = pair().await;
    let callers: Vec<_> = (0..100)
        .map(|number| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move { pipeline.send(&echo(number)).await.expect("an answer") })
        })
        .collect();
    expect(&mut server, 0..100).await;
    for number in 0..100 {
        // In two parts, so that no answer is whole when it arrives.
        server.write_all(format!(":{number}").as_bytes()).await.expect("an open connection");
        tokio::task::yield_now().await;
        server.write_all(b"\r\n").await.expect("an open connection");
    }
    for (number, caller) in (0..).zip(callers) {
        assert_eq!(caller.await.expect("no panic"), Value::Int(number));
    }
    assert!(pipeline.0.lock().commands.is_empty());
}

#[tokio::test]
async fn a_caller_that_leaves_takes_no_answer_of_another() {
    let (pipeline, mut server) = pair().await;
    let command = echo(0);
    let mut first = Box::pin(pipeline.send(&command));
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    let second = tokio::spawn({
        let pipeline = pipeline.clone();
        async move { pipeline.send_together(&[&echo(1), &echo(2)]).await.expect("an answer") }
    });
    expect(&mut server, 0..3).await;
    server.write_all(b":0\r\n:1\r\n:2\r\n").await.expect("an open connection");
    assert_eq!(second.await.expect("no panic"), Value::Int(2));
    assert!(pipeline.0.lock().commands.is_empty());
}

#[tokio::test]
async fn all_callers_fail_when_the_server_is_gone() {
    let (pipeline, server) = pair().await;
    let waiting = tokio::spawn({
        let pipeline = pipeline.clone();
        async move { pipeline.send(&echo(0)).await }
    });
    tokio::task::yield_now().await;
    drop(server);
    assert!(waiting.await.expect("no panic").is_err());
    assert!(pipeline.send(&echo(1)).await.is_err());
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_connection() {
    let (pipeline, mut server) = pair().await;
    server.write_all(b":1\r\n").await.expect("an open connection");
    while !pipeline.0.lock().is_closed {
        tokio::task::yield_now().await;
    }
    assert!(pipeline.send(&echo(0)).await.is_err());
}
