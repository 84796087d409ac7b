//! Evaluates `matchConditions`: all must be `true`.

use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::outcome::{Skip, SkipCause};
use crate::policy::MatchCondition;
use crate::policy::expression::ExpressionResult;
use crate::policy::template::TemplateError;

use super::{NotApplied, WorkloadFacts};

impl WorkloadFacts<'_, '_> {
    pub(super) fn check_conditions(&self, conditions: &[MatchCondition]) -> Result<(), NotApplied> {
        if conditions.is_empty() {
            return Ok(());
        }
        match self.first_that_fails(conditions) {
            Ok(None) => Ok(()),
            Ok(Some(failed)) => {
                let reason = format!("the condition `{}` is false", failed.name);
                let skip = Skip::because(SkipCause::Condition, reason);
                Err(skip.wanted_at(failed.at.clone()).into())
            }
            Err(problem) => Err(NotApplied::Undecided(problem)),
        }
    }

    /// The first condition that does not hold.
    pub(super) fn first_that_fails<'c>(
        &self,
        conditions: &'c [MatchCondition],
    ) -> Result<Option<&'c MatchCondition>, Box<Diagnostic>> {
        let evaluator = self.evaluator();
        for condition in conditions {
            let undecided = |fault: TemplateError| {
                let at = (condition.at.clone(), "in this condition");
                let problem = fault.into_diagnostic(&self.policy.text, at);
                Box::new(problem.at(self.workload.name_place(), "for this workload"))
            };
            let outcome = evaluator.evaluate(&condition.expression);
            match outcome.map_err(undecided)? {
                ExpressionResult::Value(Value::Bool(true)) => {}
                ExpressionResult::Value(Value::Bool(false)) => return Ok(Some(condition)),
                ExpressionResult::Value(_) | ExpressionResult::Absent => {
                    let name = &condition.name;
                    let message = format!("the condition `{name}` must evaluate to true or false");
                    let help = "use a comparison";
                    let fault = TemplateError::new(Code::BadExpression, message, help);
                    return Err(undecided(fault));
                }
            }
        }
        Ok(None)
    }
}
