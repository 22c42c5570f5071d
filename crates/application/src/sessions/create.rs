//! Creates a session: checks what a request names against the lookups, and inserts the session.

use chrono::TimeDelta;
use domain::{
    frame_ancestors::FrameAncestor,
    id::{ContactId, SessionId, TemplateId},
    notification::{Channel, Invitation},
    platform::Platform,
    request::{InvalidRequest, Location, NewSession, RequestedLocation, SessionTerms},
    session::{Progress, Session, State, Version},
    template::TemplateStatus,
    worker_region::WorkerRegion,
    workflow::Definition,
};
use ports::{
    StoreError,
    contact_store::StoredContact,
    driving::{Caller, CreateError, CreatedSession, IdempotentRequest},
    rate_limiter::{Charge, Subject},
    session_store::{IdempotencyKey, InsertOutcome},
};

use super::SessionUseCases;
use crate::portal::account_key;

/// How long a repeated `Idempotency-Key` returns the session of the first request.
const IDEMPOTENCY_KEY_TTL: TimeDelta = TimeDelta::hours(24);

/// A location as the lookup spells it, and the ISO 3166-2 code of its region.
struct ResolvedPlace {
    location: Location,
    region_code: Option<&'static str>,
}

/// The records that a request names, where they exist.
struct ResolvedReferences<'a> {
    platform: Option<&'a Platform>,
    contact: Option<ContactId>,
    template: Option<TemplateId>,
    /// The origins on which a return URL may be; read only where the request has one.
    origins: Vec<FrameAncestor>,
    /// The platform's definition; read only where the request has an address for it.
    definition: Option<Definition>,
}

/// Returns what is wrong with the address that a session is to open.
fn custom_url_finding(definition: Option<&Definition>, url: &str) -> Option<String> {
    let Some((definition, custom)) =
        definition.and_then(|definition| Some((definition, definition.custom_url.as_ref()?)))
    else {
        return Some("customUrl must be left out for this platform".to_owned());
    };
    if url.contains("://") && definition.custom_address(url).is_some() {
        return None;
    }
    let (hosts, pattern) = (definition.hosts.join(", "), &custom.pattern);
    Some(format!("customUrl must be an https URL on {hosts} with a path like {pattern}"))
}

/// Returns the channel over which the service sends the link, if the request names one; otherwise
/// the finding for the partner.
fn invitation(
    active: &[Channel],
    request: &NewSession,
    template: Option<TemplateId>,
) -> Result<Option<Invitation>, String> {
    let Some(id) = request.channel else { return Ok(None) };
    let channel = Channel::of(id).filter(|channel| active.contains(channel));
    let channel = channel.ok_or("notificationPlatformId must be one of the lookup")?;
    // The HTTP API has checked that a request with a channel has a receiver.
    let receiver = request.receiver.as_ref();
    if receiver.is_some_and(|receiver| channel.address(receiver).is_none()) {
        let needs = channel.required_field();
        return Err(format!("receiverData.{needs} must be given with this channel"));
    }
    if request.email_template.is_some() && channel != Channel::Email {
        return Err("emailTemplateId must be left out with a channel that is not email".to_owned());
    }
    Ok(Some(Invitation { channel, sender: request.sender_name.clone(), template }))
}

impl SessionUseCases {
    pub(super) async fn create_session(
        &self,
        caller: &Caller,
        mut request: NewSession,
        once: Option<IdempotentRequest>,
    ) -> Result<CreatedSession, CreateError> {
        let platform = self.catalogue.platform(request.platform).await?;
        let registered = self.registered(caller, &request).await?;
        if let Some(registered) = &registered {
            let given = request.receiver.take().unwrap_or_default();
            request.receiver = Some(given.or(&registered.contact));
        }
        let receiver_id = registered.map(|registered| registered.id);
        let template = self.approved(caller, &request).await?;
        let origins = match &request.return_url {
            Some(_) => self.teams.frame_ancestors(caller.team).await?,
            None => vec![],
        };
        let definition = match &request.custom_url {
            Some(_) => self.catalogue.definition(request.platform).await?,
            None => None,
        };
        let definition = definition.map(|(_, definition)| definition);
        let found = ResolvedReferences {
            platform: platform.as_ref(),
            contact: receiver_id,
            template,
            origins,
            definition,
        };
        let ResolvedPlace { location, region_code } = self.resolve(caller, &request, &found)?;
        let worker_region = request
            .preferred_region
            .unwrap_or_else(|| WorkerRegion::closest_to(&location.country, region_code));
        let now = self.engine.clock.now();
        let session = Session {
            id: SessionId::from_u128(self.random.new_id()),
            owner: caller.id,
            terms: SessionTerms {
                platform: request.platform,
                environment: caller.environment,
                location,
                worker_region,
                attestation: request.attestation,
                invitation: invitation(&self.channels, &request, template).ok().flatten(),
                attestation_challenge: request.attestation_challenge,
                receiver: request.receiver,
                receiver_id,
                external_reference: request.external_reference,
                purpose: request.purpose,
                return_url: request.return_url,
                max_attempts: request.max_attempts,
                custom_url: request.custom_url,
                studio: request.studio,
            },
            state: State::START,
            progress: Progress::default(),
            workflow: None,
            version: Version::FIRST,
            created_at: now,
            expires_at: now + request.expires_in.span(),
            closed_at: None,
            erased_at: None,
        };
        // A request that is repeated with its `Idempotency-Key` is charged again.
        self.charge_recipient(caller, &session.terms)
            .await
            .map_err(|retry_after| CreateError::TooManyLinks { retry_after })?;
        let once = once.map(|IdempotentRequest { key, request }| IdempotencyKey {
            key,
            request,
            since: now - IDEMPOTENCY_KEY_TTL,
        });
        let opening = session.opening();
        let (session, replayed) = match self.engine.sessions.insert(&opening, once.as_ref()).await?
        {
            InsertOutcome::Fresh => (opening.session, false),
            InsertOutcome::Before(session) => (*session, true),
            InsertOutcome::OtherRequest => return Err(CreateError::OtherRequest),
            InsertOutcome::InFlight => return Err(CreateError::InFlight),
        };
        Ok(CreatedSession { view: self.urls.with_urls(session), replayed })
    }

    /// Charges a link to the applicant's address, for all keys of the team together.
    ///
    /// # Errors
    /// The seconds until the next link may be sent, where the limit is exceeded.
    pub(super) async fn charge_recipient(
        &self,
        caller: &Caller,
        terms: &SessionTerms,
    ) -> Result<(), i64> {
        let channel = terms.invitation.as_ref().map(|invitation| invitation.channel);
        let address = channel.zip(terms.receiver.as_ref());
        let address = address.and_then(|(channel, receiver)| channel.address(receiver));
        let Some((address, limit)) = address.zip(self.recipient_limit) else { return Ok(()) };
        let subject = Subject::Recipient(caller.team, account_key(address));
        let now = self.engine.clock.now();
        let windows = self.limiter.charge(&[Charge { subject, limit }], now).await;
        let exceeded = windows.first().filter(|window| !window.admits());
        exceeded.map_or(Ok(()), |window| Err(window.retry_after(now)))
    }

    /// Returns the registered contact that the request names.
    async fn registered(
        &self,
        caller: &Caller,
        request: &NewSession,
    ) -> Result<Option<StoredContact>, StoreError> {
        let id = request.receiver_id.as_deref().and_then(|id| id.parse().ok());
        let Some(id) = id else { return Ok(None) };
        self.contacts.contact(caller.team, id).await
    }

    /// Returns the team's approved template that the request names.
    async fn approved(
        &self,
        caller: &Caller,
        request: &NewSession,
    ) -> Result<Option<TemplateId>, StoreError> {
        let id = request.email_template.and_then(|id| i32::try_from(id).ok()).map(TemplateId);
        let Some(id) = id else { return Ok(None) };
        let stored = self.templates.template(caller.team, id).await?;
        Ok(stored
            .filter(|stored| stored.status == TemplateStatus::Approved)
            .map(|stored| stored.id))
    }

    /// Checks the request against the lookups, and returns its location as they spell it.
    ///
    /// # Errors
    /// All findings at once.
    fn resolve(
        &self,
        caller: &Caller,
        request: &NewSession,
        found: &ResolvedReferences<'_>,
    ) -> Result<ResolvedPlace, InvalidRequest> {
        let mut findings = Vec::new();
        if !found.platform.is_some_and(|p| p.is_active && p.environment == caller.environment) {
            findings.push("platformId must be an active platform of the lookup".to_owned());
        }
        let place = self.place(&request.location, &mut findings);
        if let Err(finding) = invitation(&self.channels, request, found.template) {
            findings.push(finding);
        }
        if request.email_template.is_some() && found.template.is_none() {
            findings.push("emailTemplateId must be one of the lookup".to_owned());
        }
        if request.receiver_id.is_some() && found.contact.is_none() {
            findings.push("receiverId must be a registered receiver of the team".to_owned());
        }
        if request.return_url.as_ref().is_some_and(|url| !url.is_on(&found.origins)) {
            let rule = "returnUrl must be on one of the team's embed origins";
            findings.push(rule.to_owned());
        }
        if let Some(url) = &request.custom_url {
            findings.extend(custom_url_finding(found.definition.as_ref(), url));
        }
        if !findings.is_empty() {
            return Err(InvalidRequest(findings));
        }
        Ok(place)
    }

    /// Resolves a location in the lookup, and adds a finding for each part that is not in it.
    fn place(&self, wanted: &RequestedLocation, findings: &mut Vec<String>) -> ResolvedPlace {
        let country = self.places.country(&wanted.country);
        if country.is_none() {
            findings.push("location.country must be a supported country".to_owned());
        }
        let [state, region] =
            [("state", &wanted.state), ("region", &wanted.region)].map(|(field, name)| {
                let name = name.as_ref()?;
                let region = country.and_then(|country| country.region(name));
                if region.is_none() {
                    findings.push(format!("location.{field} must be a region of the country"));
                }
                region
            });
        if let (Some(state), Some(region)) = (state, region)
            && state != region
        {
            findings.push("location.state and location.region must be the same".to_owned());
        }
        let region = state.or(region);
        let region_is_known =
            region.is_some() || (wanted.state.is_none() && wanted.region.is_none());
        let city = wanted.city.as_ref().zip(country).filter(|_| region_is_known).and_then(
            |(name, country)| match region {
                Some(region) if region.has_cities() => {
                    let city = region.city(name);
                    if city.is_none() {
                        findings.push("location.city must be a city of the region".to_owned());
                    }
                    city.map(str::to_owned)
                }
                None if country.has_cities() => {
                    let city = country.city(name);
                    if city.is_none() {
                        findings.push("location.city must be a city of the country".to_owned());
                    }
                    city.map(str::to_owned)
                }
                Some(_) | None => Some(name.clone()),
            },
        );
        ResolvedPlace {
            location: Location {
                country: wanted.country.clone(),
                region: region.map(|region| region.name.to_owned()),
                city,
            },
            region_code: region.map(|region| region.code),
        }
    }
}
