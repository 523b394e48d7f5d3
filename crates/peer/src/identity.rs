//! The certificates of a server: its own with the key, and that of the authority of its cluster.
//!
//! TLS 1.3 without resumption: connections are kept and used again, so a handshake is rare.

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;
use vervet_model::{Error, ErrorKind, Result};

/// Names the protocol inside TLS, so that one port can serve several.
const ALPN: &[u8] = b"vervet-peer";

/// See the header of this file.
pub struct Identity {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// From PEM texts: certificates of the authority, chain of the server, its private key.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: a text is damaged, or the key is not that of the certificate.
    pub fn from_pem(authority: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Input, format!("the {what} of the server cannot be used: {error}"))
                .with_hint("give each server the files that were made for it with the cluster")
        };
        let mut roots = RootCertStore::empty();
        for root in certificates(authority).map_err(|error| wrong("certificate authority", &error))? {
            roots.add(root).map_err(|error| wrong("certificate authority", &error))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(certificate).map_err(|error| wrong("certificate", &error))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong("private key", &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = &[&rustls::version::TLS13];

        let known = (Arc::clone(&roots), chain.clone());
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| wrong("private key", &error))?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|error| wrong("private key", &error))?;
        client.resumption = Resumption::disabled();
        client.alpn_protocols = vec![ALPN.to_vec()];

        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| wrong("certificate authority", &error))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| wrong("private key", &error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| wrong("private key", &error))?;
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { client: Arc::new(client), server: Arc::new(server), roots: known.0, chain: known.1 })
    }

    /// Whether the certificate is that of the server of this name, issued by the authority: other servers
    /// would refuse any other.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: it is not.
    pub fn check(&self, server_name: &str) -> Result<()> {
        let wrong = |error: &dyn std::fmt::Display| {
            let what = format!("the certificate is not that of server {server_name:?}: {error}");
            Error::new(ErrorKind::Input, what)
                .with_hint("give each server the files that were made for it with the cluster")
        };
        let name = ServerName::try_from(server_name.to_owned()).map_err(|error| wrong(&error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(&self.roots), provider).build();
        let verifier = verifier.map_err(|error| wrong(&error))?;
        let (end, intermediates) = self.chain.split_first().ok_or_else(|| wrong(&"there is none"))?;
        let checked = verifier.verify_server_cert(end, intermediates, &name, &[], UnixTime::now());
        checked.map(drop).map_err(|error| wrong(&error))
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let list = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    if list.is_empty() { Err("the text contains no certificate".to_owned()) } else { Ok(list) }
}
