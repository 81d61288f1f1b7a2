//! TLS, with the certificates of a private authority.

use std::{fs, path::Path, process::Command, time::Duration};

use cache_lock::{BackendErrorKind, LockError, LockManager, LockOptions, TlsConfig};
use test_support::RedisServer;

use crate::common::chain::says_nothing_twice;

const ONCE: LockOptions = LockOptions::new().timeout(Duration::ZERO);

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    fs::read(path).expect("it was generated")
}

async fn connect(server: &RedisServer, tls: TlsConfig) -> Result<LockManager, LockError> {
    LockManager::builder().tls(tls).connect(&server.tls_url()).await
}

fn trusting(server: &RedisServer) -> TlsConfig {
    TlsConfig::new().root_certificate(read(server.ca_certificate()))
}

/// A certificate and its key, signed by the server's authority.
fn client_certificate(server: &RedisServer) -> (Vec<u8>, Vec<u8>) {
    let generate = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
         -keyout client.key -out client.csr -subj /CN=client && \
         printf 'extendedKeyUsage = clientAuth' > client.ext && \
         openssl x509 -req -in client.csr -out client.crt -days 2 -extfile client.ext \
         -CA ca.crt -CAkey ca.key -set_serial 2";
    let authority = server.ca_certificate();
    let dir = authority.parent().expect("a directory");
    let output = Command::new("sh").args(["-c", generate]).current_dir(dir).output();
    let output = output.expect("there is a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (read(dir.join("client.crt")), read(dir.join("client.key")))
}

#[tokio::test]
async fn own_root_certificate_is_trusted() {
    let server = RedisServer::builder().tls().password("word").start();
    let locks = connect(&server, trusting(&server)).await.expect("the certificate is trusted");
    locks.run("room", &ONCE, async |_| ()).await.expect("it works");
    let debug = format!("{locks:?}");
    assert!(debug.contains("rediss://") && !debug.contains("word"), "{debug}");
}

#[tokio::test]
async fn foreign_root_certificate_is_refused() {
    let (server, other) =
        (RedisServer::builder().tls().start(), RedisServer::builder().tls().start());
    for tls in [trusting(&other), TlsConfig::new()] {
        let error = connect(&server, tls).await.expect_err("the authority is unknown");
        let LockError::Connect { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::Configuration, "{error}");
        says_nothing_twice(&error);
        assert!(error.to_string().contains("certificate"), "{error}");
        assert!(!error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn client_certificate_is_shown() {
    let server = RedisServer::builder().tls().config("tls-auth-clients", "yes").start();
    let (certificate, key) = client_certificate(&server);
    let tls = trusting(&server).client_certificate(certificate, key);
    let debug = format!("{tls:?}");
    assert!(!debug.contains("BEGIN") && !debug.contains('['), "{debug}");
    let locks = connect(&server, tls).await.expect("both know each other");
    locks.run("room", &ONCE, async |_| ()).await.expect("it works");

    let error = connect(&server, trusting(&server)).await.expect_err("it shows no certificate");
    let LockError::Connect { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), BackendErrorKind::Configuration, "{error}");
    says_nothing_twice(&error);
    assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
}

#[tokio::test]
async fn invalid_certificate_is_configuration_error() {
    let server = RedisServer::builder().tls().start();
    for tls in [
        TlsConfig::new().root_certificate("nonsense"),
        trusting(&server).client_certificate("nonsense", "nonsense"),
    ] {
        let error = connect(&server, tls).await.expect_err("they are none");
        let LockError::Connect { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), BackendErrorKind::Configuration, "{error}");
        says_nothing_twice(&error);
    }
}
