//! Writing definitions without writing JSON: proposals of selectors, signals, lists and converters for
//! what an author chooses on a page, and the studio in which the author chooses it.

mod ancestors;
mod columns;
mod draft;
mod explore;
mod lists;
mod naming;
mod next_page;
mod parameters;
mod rows;
mod selectors;
mod signals;
mod studio;
mod studios;
#[cfg(test)]
mod tests;
mod values;
mod visibility;

pub use self::{
    columns::{ColumnProposal, propose_columns},
    draft::{
        AddressChoice, DraftError, FieldChange, FieldSource, KnownValues, Marking, NewField,
        NewList, NewMember, PageKind, PartChoice, Reading, VariableChange, add_field, add_member,
        add_variable, dismiss, dismissed, edit_field, edit_variable, mark_page, move_field,
        move_member, new_definition, remove_dismissed, remove_field, remove_member,
        remove_next_page, remove_page, remove_variable, set_next_page,
    },
    lists::{ListProposal, propose_json_list, propose_list},
    naming::{label_of, label_of_name, name_of},
    selectors::{SelectorProposal, propose_selectors},
    signals::{
        ConditionProposal, Counting, KnownPage, OtherScreen, describe, page_language,
        propose_conditions,
    },
    studio::{
        AddressView, ChosenSource, DefinitionPublisher, Edit, ElementView, FoundElements,
        InspectionView, MissingColumn, PublicationError, ReadingView, RunFrom, Studio, StudioError,
        StudioParts, StudioView, SuggestedConditions, TraceSink, TriedReading, missing_columns,
        text_of,
    },
    studios::{StudioDocument, Studios, StudiosParts},
    values::{ValueProposal, propose_json_values, propose_values},
};
