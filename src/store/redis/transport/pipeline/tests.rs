//! Callers, and a server that the test plays.

use std::thread;

use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::net::UnixStream;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::*;

async fn pair() -> (Pipeline, DuplexStream) {
    let (near, far) = duplex(1 << 20);
    let (pipeline, driver) = Pipeline::over(near, None);
    tokio::spawn(driver);
    yield_now().await;
    (pipeline, far)
}

fn echo(number: i64) -> Cmd {
    let mut command = redis::cmd("ECHO");
    command.arg(number);
    command
}

async fn expect(server: &mut (impl AsyncRead + Unpin), numbers: std::ops::Range<i64>) {
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
        yield_now().await;
        server.write_all(b"\r\n").await.expect("an open connection");
    }
    for (number, caller) in (0..).zip(callers) {
        assert_eq!(caller.await.expect("no panic"), Value::Int(number));
    }
    assert!(pipeline.0.queue.lock().commands.is_empty());
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
    assert!(pipeline.0.queue.lock().commands.is_empty());
}

#[tokio::test]
async fn all_callers_fail_when_the_server_is_gone() {
    let (pipeline, server) = pair().await;
    let waiting = tokio::spawn({
        let pipeline = pipeline.clone();
        async move { pipeline.send(&echo(0)).await }
    });
    yield_now().await;
    drop(server);
    assert!(waiting.await.expect("no panic").is_err());
    assert!(pipeline.send(&echo(1)).await.is_err());
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_connection() {
    let (pipeline, mut server) = pair().await;
    server.write_all(b":1\r\n").await.expect("an open connection");
    while pipeline.0.queue.lock().ended.is_none() {
        yield_now().await;
    }
    assert!(pipeline.send(&echo(0)).await.is_err());
}

/// A pipeline over a real socket, whose server may be silent for this long.
async fn pair_with(timeout: Duration) -> (Pipeline, UnixStream) {
    let (near, far) = UnixStream::pair().expect("sockets");
    let (pipeline, driver) = Pipeline::over(near, Some(timeout));
    tokio::spawn(driver);
    yield_now().await;
    (pipeline, far)
}

#[tokio::test]
async fn a_server_that_is_silent_while_it_owes_an_answer_is_given_up_after_the_timeout() {
    let timeout = Duration::from_millis(40);
    let (pipeline, mut server) = pair_with(timeout).await;
    // Silence is no fault of a server that owes nothing.
    sleep(3 * timeout).await;
    let command = echo(0);
    let ask = pipeline.send(&command);
    let answer = async {
        expect(&mut server, 0..1).await;
        server.write_all(b":0\r\n").await.expect("an open connection");
    };
    assert_eq!(tokio::join!(ask, answer).0, Ok(Value::Int(0)));
    let begin = Instant::now();
    assert_eq!(pipeline.send(&echo(1)).await, Err(NoAnswer::Silent));
    assert!(begin.elapsed() >= timeout, "{:?}", begin.elapsed());
    assert_eq!(pipeline.send(&echo(2)).await, Err(NoAnswer::NotSent));
}

#[tokio::test]
async fn a_server_that_brings_bytes_is_waited_for() {
    let timeout = Duration::from_millis(40);
    let (pipeline, mut server) = pair_with(timeout).await;
    let command = echo(0);
    let dripping = async {
        for byte in "$20\r\n01234567890123456789\r\n".bytes() {
            sleep(timeout / 4).await;
            server.write_all(&[byte]).await.expect("an open connection");
        }
    };
    let (answer, ()) = tokio::join!(pipeline.send(&command), dripping);
    assert_eq!(answer, Ok(Value::BulkString(b"01234567890123456789".to_vec())));
}

/// The thread of the connection stops for longer than the timeout, again and again, while the server answers.
#[tokio::test]
async fn a_thread_that_was_away_takes_the_answers_that_came_meanwhile() {
    let timeout = Duration::from_millis(8);
    let (pipeline, server) = pair_with(timeout).await;
    for number in 0..20 {
        let command = echo(number);
        let away = async {
            thread::sleep(4 * timeout);
            server.try_write(format!(":{number}\r\n").as_bytes()).expect("an open connection");
            thread::sleep(4 * timeout);
        };
        assert_eq!(tokio::join!(pipeline.send(&command), away).0, Ok(Value::Int(number)));
    }
}

#[tokio::test]
async fn commands_beyond_those_under_way_wait_in_order() {
    let (pipeline, mut server) = pair().await;
    let count = i64::try_from(UNDER_WAY).expect("a small number");
    let callers: Vec<_> = (0..count + 3)
        .map(|number| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move { pipeline.send(&echo(number)).await })
        })
        .collect();
    expect(&mut server, 0..count).await;
    assert_eq!(pipeline.0.queue.lock().commands.len(), UNDER_WAY);
    server.write_all(b":0\r\n:1\r\n").await.expect("an open connection");
    expect(&mut server, count..count + 2).await;
    drop(server);
    let mut answers = Vec::new();
    for caller in callers {
        answers.push(caller.await.expect("no panic"));
    }
    assert_eq!(answers[..2], [Ok(Value::Int(0)), Ok(Value::Int(1))]);
    assert!(answers[2..UNDER_WAY + 2].iter().all(|answer| *answer == Err(NoAnswer::Closed)));
    assert_eq!(answers[UNDER_WAY + 2..], [Err(NoAnswer::NotSent)]);
}
