use std::path::Path;
use std::process::Command;

/// The authority's certificate in the server's directory.
pub(super) const CA_CERTIFICATE: &str = "ca.crt";

/// An authority, and a certificate of the server that it signed: clients refuse a self-signed
/// certificate that is its own authority.
const GENERATE: &str = r#"
set -e
new_key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $new_key -keyout ca.key -out ca.crt -days 2 -subj "/CN=test authority"
openssl req $new_key -keyout server.key -out server.csr -subj "/CN=localhost"
echo "subjectAltName = DNS:localhost, IP:127.0.0.1" > server.ext
openssl x509 -req -in server.csr -out server.crt -days 2 -extfile server.ext \
    -CA ca.crt -CAkey ca.key -set_serial 1
"#;

/// Generates the certificates in `dir`; the configuration that uses them.
pub(super) fn configure(dir: &Path, port: u16) -> String {
    let output = Command::new("sh")
        .args(["-c", GENERATE])
        .current_dir(dir)
        .output()
        .expect("there is a shell");
    assert!(
        output.status.success(),
        "openssl is missing or failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let dir = dir.display();
    format!(
        "tls-port {port}\ntls-ca-cert-file {dir}/{CA_CERTIFICATE}\n\
         tls-cert-file {dir}/server.crt\ntls-key-file {dir}/server.key\ntls-auth-clients no\n"
    )
}
