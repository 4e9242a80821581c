package refusal

// The caller and the request.
const (
	RequestMalformed Code = "requete_invalide" // something required is missing, or the request cannot be read

	KeyRequired Code = "cle_absente"  // no Authorization header of the form Bearer <token>
	KeyInvalid  Code = "cle_invalide" // the token is malformed, unknown, revoked, or of a closed account

	LinkInvalid Code = "lien_invalide" // the link for a session is malformed, unknown, used or expired, or its token is revoked

	PlanInsufficient Code = "plan_insuffisant"             // the account's plan does not include the endpoint
	RoleForbidden    Code = "role_insuffisant"             // the customer-area token's role does not allow it
	KeyOutOfScope    Code = "cle_publiable_hors_perimetre" // a publishable key may be used for one method and path only
	OriginMissing    Code = "origine_absente"              // a publishable key without Origin, as a server would use it
	OriginNotAllowed Code = "origine_non_autorisee"        // the page's origin is not declared on the key

	ForeignPage      Code = "page_etrangere"              // a session's request that changes something, from a page of another site
	LoginUnencrypted Code = "connexion_non_chiffree"      // no browser keeps the cookie of a session at the customer area's address
	TooManyLogins    Code = "connexions_trop_rapprochees" // failed attempts to open a session, from one address

	NotFound         Code = "inconnu"               // no such route, or nothing by that id
	MethodNotAllowed Code = "methode_non_autorisee" // the path has other methods
	Misdirected      Code = "hote_inconnu"          // the Host header names another server
)

// The state of referentials and sites.
const (
	ReferentialCodeTaken     Code = "code_deja_utilise"              // a referential of the account, active or archived, has the code
	ReferentialArchived      Code = "referentiel_archive"            // the referential takes no writes any more
	SitesOverCapacity        Code = "capacite_sites_depassee"        // the write would leave more active sites than the ceiling
	ReferentialsOverCapacity Code = "capacite_referentiels_depassee" // the plan's referentials are all in use
	SuspiciousReduction      Code = "reduction_suspecte"             // an unconfirmed sync would deactivate more than half of the active sites
	IdempotencyMismatch      Code = "idempotence"                    // the Idempotency-Key came with another request in the last 24 hours
)

// The state of accounts, agencies and keys. AccountActionRefused records these codes.
const (
	KeysOverCapacity   Code = "capacite_cles_publiables_depassee" // the plan's publishable keys are all in use, or it has none
	AccountExists      Code = "compte_deja_ouvert"
	AccountClosed      Code = "compte_ferme"
	AccountOpen        Code = "compte_ouvert" // only a closed account can be erased
	AgencyUnknown      Code = "agence_inconnue"
	AgencyClosed       Code = "agence_fermee" // a sub-client of a closed agency gets no key
	NestedAgency       Code = "agence_imbriquee"
	AlreadySubClient   Code = "deja_sous_client"
	NotSubClient       Code = "pas_sous_client"
	LeavingUnconfirmed Code = "depart_a_confirmer"        // an operator must confirm that a sub-client leaves
	SubClientLeaving   Code = "sous_client_sur_le_depart" // its terms are already settled
	PlanOfAgency       Code = "plan_de_l_agence"          // a sub-client has the plan of its agency
	OriginsOnSecretKey Code = "origines_sur_cle_secrete"  // only publishable keys declare origins
	KeyRevoked         Code = "cle_revoquee"              // a revoked key cannot be changed
	KeyReplaced        Code = "cle_deja_remplacee"        // a valid key takes the place of the key already
	OriginInvalid      Code = "origine_invalide"          // an entry that cannot be declared
	TooManyOrigins     Code = "trop_d_origines"           // more distinct ones than a key can have
	TooManySessions    Code = "trop_de_sessions"          // of one token, links that were not used included
)

// The state of usage.
const (
	PeriodNotClosed      Code = "periode_non_close"    // only a closed period is corrected
	DayOutsidePeriod     Code = "jour_hors_periode"    // of a correction
	AccountNotInContract Code = "compte_hors_contrat"  // it used nothing under the contract in the period
	AdjustmentBelowZero  Code = "correction_excessive" // it would leave fewer than no requests
	AdjustmentZero       Code = "correction_nulle"     // it changes nothing
	DiscoveryQuotaSpent  Code = "quota_discovery"      // the requests of the period are used; on DISCOVERY the limit is shown
	QuotaSpent           Code = "quota"                // the requests of the period are used
	Throttled            Code = "cadence_depassee"     // a publishable key is used too fast from one address
)

// The body and parameters.
const (
	BodyTooLarge      Code = "corps_trop_grand"    // over the route's limit
	AddressUnparsable Code = "adresse_illisible"   // no number, street, postcode or commune can be made out
	AddressUnresolved Code = "adresse_non_resolue" // a centre as typed leads to no verified address
	CursorExpired     Code = "curseur_perime"      // the entries after it are no longer known
)

// The state of the service.
const (
	Internal           Code = "erreur_interne"                // any failure of the service
	RoutingUnavailable Code = "routage_indisponible"          // no routing engine is loaded
	AddressUnavailable Code = "adresses_indisponibles"        // no vintage of the address base is served
	ReadModelBehind    Code = "modele_en_retard"              // the read model does not have the account's last changes yet
	Overloaded         Code = "surcharge"                     // no memory or processor was free in time for the request or its answer
	UpgradeUnfinished  Code = "mise_a_niveau_inachevee"       // the log's format does not allow it yet
	UpgradeBlocked     Code = "mise_a_niveau_bloquee"         // an instance runs whose program does not know the log's next format
	AuthUnavailable    Code = "authentification_indisponible" // keys cannot be checked now, so nothing is served
)
