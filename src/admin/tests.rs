use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;

use super::*;

#[tokio::test]
async fn it_is_ready_until_it_drains_and_healthy_throughout() {
    let control = control();
    let router = router(Arc::clone(&control));
    assert_eq!(ask(&router, "GET", "/healthz").await.0, StatusCode::OK);
    let (status, _, body) = ask(&router, "GET", "/readyz").await;
    assert_eq!((status, &*body), (StatusCode::OK, r#"{"status":"ready","store":{"kind":"memory","up":true}}"#));

    control.begin_draining();
    assert_eq!(ask(&router, "GET", "/healthz").await.0, StatusCode::OK);
    let (status, _, body) = ask(&router, "GET", "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("draining"), "{body}");
}

#[tokio::test]
async fn metrics_are_text_for_prometheus() {
    let (status, content_type, body) = ask(&router(control()), "GET", "/metrics").await;
    assert_eq!((status, &*content_type), (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8"));
    assert!(body.contains("\nportcullis_store_keys{kind=\"memory\"} 7\n"), "{body}");
}

#[tokio::test]
async fn what_is_not_there_is_a_problem() {
    let (status, content_type, body) = ask(&router(control()), "GET", "/nothing").await;
    assert_eq!((status, &*content_type), (StatusCode::NOT_FOUND, "application/problem+json"));
    assert!(body.contains("/nothing"), "{body}");

    let (status, content_type, _) = ask(&router(control()), "POST", "/metrics").await;
    assert_eq!((status, &*content_type), (StatusCode::METHOD_NOT_ALLOWED, "application/problem+json"));
}

fn control() -> Arc<Control> {
    Control::new(Arc::new(Metrics::new()), || Gauges {
        store: "memory",
        store_up: true,
        store_keys: 7,
        ..Gauges::default()
    })
}

async fn ask(router: &Router, method: &str, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let Ok(response) = router.clone().oneshot(request).await;
    let status = response.status();
    let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}
