//! Certificates.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::Tls;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has nothing of the kind in it.
    #[error("{path}: {why}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The key does not belong to the certificate, or has a form that is not supported.
    #[error("{} with the key {} cannot be used: {source}", .certificates.display(), .key.display())]
    Certificate {
        /// The certificates.
        certificates: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// What greets clients.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let fault = |path: &PathBuf, why: &dyn std::fmt::Display| TlsError::File {
        path: path.clone(),
        why: why.to_string(),
    };
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error: io::Error| fault(path, &error));
    let chain = read(&tls.certificates)?;
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|error| fault(&tls.certificates, &error))?;
    if chain.is_empty() {
        return Err(fault(&tls.certificates, &"it has no certificate in PEM"));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&tls.key)?);
    let key = key.map_err(|_| fault(&tls.key, &"it has no private key in PEM"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unusable = |source| TlsError::Certificate {
        certificates: tls.certificates.clone(),
        key: tls.key.clone(),
        source,
    };
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
