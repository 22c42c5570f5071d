//! The diagnosis of a deployment: all examinations at once, each within a bound.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use ports::{
    diagnostic::{Diagnosis, Diagnostic},
    driving::{DiagnosedSubject, DiagnosisService},
};

/// How long an examination may take.
const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(25);

/// Examines what a configuration names.
pub struct DeploymentDiagnosis {
    /// In the order of the report.
    pub diagnostics: Vec<Arc<dyn Diagnostic>>,
}

#[async_trait]
impl DiagnosisService for DeploymentDiagnosis {
    async fn diagnose(&self) -> Vec<DiagnosedSubject> {
        let examined = self.diagnostics.iter().map(|diagnostic| async {
            let subject = diagnostic.subject();
            let found = examine(diagnostic.clone()).await.into_iter();
            found.map(|diagnosis| DiagnosedSubject { subject, diagnosis }).collect::<Vec<_>>()
        });
        join_all(examined).await.concat()
    }
}

/// Examines in a task of its own, so that one that blocks or panics does not affect the others.
async fn examine(diagnostic: Arc<dyn Diagnostic>) -> Vec<Diagnosis> {
    let task = tokio::spawn(async move { diagnostic.examine().await });
    let abort = task.abort_handle();
    match tokio::time::timeout(EXAMINATION_TIMEOUT, task).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            let advice = "report this as a defect of the service";
            vec![Diagnosis::failed(format!("the examination failed: {error}"), advice)]
        }
        Err(_) => {
            abort.abort();
            let detail = format!("no result within {} s", EXAMINATION_TIMEOUT.as_secs());
            let advice = "look at the network, and at the load of this machine";
            vec![Diagnosis::failed(detail, advice)]
        }
    }
}

#[cfg(test)]
mod tests {
    use ports::diagnostic::DiagnosisState;

    use super::*;

    /// Finds something, panics, or never ends.
    enum Probe {
        Finds(Diagnosis),
        Panics,
        Hangs,
    }

    #[async_trait]
    impl Diagnostic for Probe {
        fn subject(&self) -> &'static str {
            match self {
                Self::Finds(_) => "finds",
                Self::Panics => "panics",
                Self::Hangs => "hangs",
            }
        }

        async fn examine(&self) -> Vec<Diagnosis> {
            match self {
                Self::Finds(diagnosis) => vec![diagnosis.clone(), diagnosis.clone()],
                Self::Panics => panic!("a defect"),
                Self::Hangs => std::future::pending().await,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn examinations_run_at_once_and_each_has_a_bound() {
        let warning = Diagnosis::warning("it is old", "renew it");
        let probes = [
            Probe::Hangs,
            Probe::Finds(warning.clone()),
            Probe::Hangs,
            Probe::Panics,
            Probe::Hangs,
        ];
        let diagnostics: [Arc<dyn Diagnostic>; 5] = probes.map(|probe| {
            let probe: Arc<dyn Diagnostic> = Arc::new(probe);
            probe
        });
        let began = tokio::time::Instant::now();
        let found = DeploymentDiagnosis { diagnostics: diagnostics.into() }.diagnose().await;
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        let subjects: Vec<_> = found.iter().map(|found| found.subject).collect();
        assert_eq!(subjects, ["hangs", "finds", "finds", "hangs", "panics", "hangs"]);
        for found in found {
            if found.subject == "finds" {
                assert_eq!(found.diagnosis, warning);
            } else {
                assert_eq!(found.diagnosis.state, DiagnosisState::Failed);
            }
        }
    }
}
