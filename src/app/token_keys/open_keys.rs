//! The keys of a configuration, and those of the one before it.

use std::sync::Arc;

use crate::gateway::Snapshot;
use crate::gateway::tokens::KeySource;
use crate::gateway::tokens::LiveKeys;
use crate::gateway::tokens::TokenSettings;
use crate::gateway::tokens::TokenVerifier;

/// The keys of a configuration. `None`: it has no `jwt`.
#[derive(Clone, Debug, Default)]
pub(in crate::app) struct OpenKeys(Option<SourcedKeys>);

/// Where keys come from, and those that are known.
#[derive(Clone, Debug)]
pub(super) struct SourcedKeys {
    pub(super) source: KeySource,
    pub(super) live: Arc<LiveKeys>,
}

impl OpenKeys {
    /// The keys of a configuration. From the same source they stay as they are known.
    pub(in crate::app) fn reopen(&self, settings: Option<&TokenSettings>) -> Self {
        let keys = settings.map(|TokenSettings { keys: source, .. }| match &self.0 {
            Some(before) if before.source == *source => before.clone(),
            _ => SourcedKeys { source: source.clone(), live: first_known(source) },
        });
        Self(keys)
    }

    /// The verifier of the same configuration. If nothing is different, that of the snapshot before stays.
    pub(in crate::app) fn verifier(
        &self,
        settings: Option<&TokenSettings>,
        before: Option<&Snapshot>,
    ) -> Option<Arc<TokenVerifier>> {
        let (settings, keys) = (settings?, self.0.as_ref()?);
        let before = before.and_then(|before| before.tokens.as_ref());
        Some(TokenVerifier::carry_over(settings, &keys.live, before))
    }

    pub(super) fn keys(&self) -> Option<&SourcedKeys> {
        self.0.as_ref()
    }
}

/// What is known before anything is fetched.
fn first_known(source: &KeySource) -> Arc<LiveKeys> {
    Arc::new(match source {
        KeySource::File(set) => LiveKeys::of(Arc::clone(set)),
        KeySource::Url(_) => LiveKeys::default(),
    })
}
