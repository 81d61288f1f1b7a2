//! A run that is told to end cleans up behind itself.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mongodb::Client;
use test_support::{MongoServer, wait_until};

const HANG: Duration = Duration::from_secs(60);

/// Ends with the test, however that ends.
struct Sale(Child);

impl Drop for Sale {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_database_is_left_behind() {
    let uri = MongoServer::start().uri();
    let client = Client::with_uri_str(uri).await.expect("it is reachable");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // A thousand seconds of thinking: it does not end by itself.
        let child = Command::new(env!("CARGO_BIN_EXE_seckill"))
            .args(["--mongodb", uri, "--mode", "lock", "--think", "2s"])
            .env_remove("REDIS_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let mut sale = Sale(child);
        let header = BufReader::new(sale.0.stdout.take().expect("it is a pipe")).lines();
        let database = header
            .map_while(Result::ok)
            .find_map(|line| line.split_once(", database ").map(|(_, name)| name.to_owned()))
            .expect("the header names it");
        let appears = async {
            while !client.list_database_names().await.expect("it answers").contains(&database) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANG, appears).await.expect("the sale begins");

        let pid = sale.0.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal} is sent");
        let mut status = None;
        wait_until("the command ends", || {
            status = sale.0.try_wait().expect("it is our child");
            status.is_some()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(code), "{signal}");
        let names = client.list_database_names().await.expect("it answers");
        assert!(!names.contains(&database), "{signal}: {database} is still there");
    }
}
