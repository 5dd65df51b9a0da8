//! Running cases side by side against a cluster.

use crate::expect::Stop;
use crate::lab::Lab;
use crate::{Case, CaseResult, Need, Report, Verdict};
use kafka_share::ClientConfig;
use kafka_share::net::Cluster;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Time for one case; its clean-up has the same again.
const CASE_LIMIT: Duration = Duration::from_secs(90);
/// Time for the first answer of the cluster.
const FIRST_ANSWER: Duration = Duration::from_secs(30);

/// Runs cases against a cluster.
#[derive(Debug, Clone)]
pub struct Runner {
    config: ClientConfig,
    cluster: String,
    side_by_side: usize,
}

impl Runner {
    /// For the cluster that these settings lead to.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        Runner { config, cluster: "cluster".into(), side_by_side: 8 }
    }

    /// What reports call the cluster.
    #[must_use]
    pub fn cluster_name(mut self, name: impl Into<String>) -> Self {
        self.cluster = name.into();
        self
    }

    /// How many cases run at once, 8 by default.
    #[must_use]
    pub fn side_by_side(mut self, cases: usize) -> Self {
        self.side_by_side = cases.max(1);
        self
    }

    /// Runs the cases. `progress` hears of each as it ends. The report has them in the order given.
    ///
    /// # Cancel safety
    /// Cases end where they are; their topics and groups stay on the cluster.
    ///
    /// # Errors
    /// Settings that make no sense, and a cluster that cannot be reached at all.
    pub async fn run(&self, cases: &[Case], mut progress: impl FnMut(&CaseResult)) -> kafka_share::Result<Report> {
        let start = Instant::now();
        let first = Cluster::new(self.config.clone())?;
        first.features(start + FIRST_ANSWER).await?;
        let permits = Arc::new(Semaphore::new(self.side_by_side));
        let run = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) as u32;
        let mut running = JoinSet::new();
        for (number, case) in cases.iter().copied().enumerate() {
            let (permits, config) = (Arc::clone(&permits), self.config.clone());
            running.spawn(async move {
                let _permit = permits.acquire_owned().await;
                (number, run_case(case, config, format!("kshare-conformance-{run:08x}-{number}")).await)
            });
        }
        let mut results: Vec<Option<CaseResult>> = vec![None; cases.len()];
        while let Some(joined) = running.join_next().await {
            if let Ok((number, result)) = joined {
                progress(&result);
                results[number] = Some(result);
            }
        }
        let lost = |case: Case| CaseResult {
            case,
            verdict: Verdict::Failed("the case itself panicked".into()),
            time: Duration::ZERO,
            transcript: Vec::new(),
        };
        let results = results.into_iter().zip(cases).map(|(r, c)| r.unwrap_or_else(|| lost(*c))).collect();
        Ok(Report { cluster: self.cluster.clone(), results, time: start.elapsed() })
    }
}

async fn run_case(case: Case, config: ClientConfig, prefix: String) -> CaseResult {
    let start = Instant::now();
    let result = |verdict, transcript| CaseResult { case, verdict, time: start.elapsed(), transcript };
    let cluster = match Cluster::new(config.clone()) {
        Ok(cluster) => cluster,
        Err(error) => return result(Verdict::Failed(error.to_string()), Vec::new()),
    };
    match missing(&case, &cluster).await {
        Ok(None) => {}
        Ok(Some(reason)) => return result(Verdict::NotSupported(reason), Vec::new()),
        Err(error) => return result(Verdict::Failed(error.to_string()), Vec::new()),
    }
    let lab = Lab::new(config, cluster, prefix);
    let verdict = match tokio::time::timeout(CASE_LIMIT, (case.run)(lab.clone())).await {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(Stop::Failed(why))) => Verdict::Failed(why),
        Ok(Err(Stop::NotSupported(why))) => Verdict::NotSupported(why),
        Err(_) => Verdict::Failed(format!("no end within {CASE_LIMIT:?}")),
    };
    let transcript = if matches!(verdict, Verdict::Failed(_)) { lab.transcript() } else { Vec::new() };
    let result = result(verdict, transcript);
    let _ = tokio::time::timeout(CASE_LIMIT, lab.clean_up()).await;
    result
}

/// What of a case's needs the cluster does not offer.
async fn missing(case: &Case, cluster: &Cluster) -> kafka_share::Result<Option<String>> {
    let versions = cluster.features(Instant::now() + FIRST_ANSWER).await?;
    for need in case.needs {
        let reason = match need {
            Need::Api(key, version) => match versions.range(*key) {
                Some((min, max)) if (min..=max).contains(version) => None,
                Some((min, max)) => Some(format!("{key} is offered in versions {min} to {max}, {version} is needed")),
                None => Some(format!("{key} (key {}) is not offered, version {version} is needed", key.0)),
            },
            Need::Feature(name, level) => {
                let have = versions.feature(name);
                (have < *level).then(|| format!("{name} is finalised at {have}, {level} is needed"))
            }
        };
        if reason.is_some() {
            return Ok(reason);
        }
    }
    Ok(None)
}
