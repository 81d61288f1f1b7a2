//! A client of the service: one connection, for the load and for tests.

use std::io;
use std::net::SocketAddr;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A connection to the service.
#[derive(Debug)]
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// The connection failed: whether the request took effect is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It could not be opened.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// It broke.
    #[error("the connection broke: {0}")]
    Http(#[from] hyper::Error),
    /// The request cannot be written.
    #[error("not a request: {0}")]
    Request(#[from] hyper::http::Error),
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn connect(address: SocketAddr) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender.
        tokio::spawn(connection);
        Ok(Self { sender, host: address.to_string() })
    }

    /// Sends a request with a body of JSON, or none, and reads the answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, ClientError> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let mut bytes = Bytes::new();
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json");
            bytes = body.to_string().into();
        }
        self.send(request.body(Full::new(bytes))?).await
    }

    /// Sends a request as it is, with `Host` added.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Answer, ClientError> {
        let host = self.host.parse().map_err(hyper::http::Error::from)?;
        request.headers_mut().insert(HOST, host);
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }
}

impl Answer {
    /// The body, if it is JSON; else null.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header, if it is there and text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
