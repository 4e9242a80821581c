package event

// catalog holds every event type once. To add an event: its struct, its line here, and a handler in the read model that
// shows it. An event that no read model but the audit trail shows is recordOnly and needs no handler.
var catalog = []Type{
	define[AccountOpened]("opened the account on plan {plan}"),
	define[PlanChanged]("changed the plan from {from} to {to} with {quota} requests a month, effective {effective}"),
	define[AgencyActivated]("activated agency mode").with(keepsAccess),
	define[AgencyJoined]("joined agency {agency}, effective {effective}"),
	define[AgencyLeft]("left agency {agency}, effective {effective}"),
	define[AccountClosed]("closed the account"),
	define[AccountErased]("erased the account's personal data").with(keepsAccess),
	define[SecretKeyIssued]("issued secret key {key} ({hint})"),
	define[PublishableKeyIssued]("issued publishable key {key} ({hint}) for {origins}"),
	define[KeyRevoked]("revoked key {key} ({hint})"),
	define[KeyOriginsChanged]("changed the origins of key {key} from {before} to {origins}"),
	define[AccountActionRefused]("was refused: {action} ({code})").with(recordOnly),

	define[AccountEventVoided]("voided event {revision} of the account's stream ({type}), which cannot be used: {why}").with(recordOnly),
	define[TokenIssued]("issued {role} token {token} ({hint})"),
	define[TokenRevoked]("revoked {role} token {token} ({hint})"),

	define[TokenEventVoided]("voided event {revision} of the token's stream ({type}), which cannot be used: {why}").with(recordOnly),
	define[ReferentialOpened]("opened referential {code}"),
	define[ReferentialRenamed]("renamed referential {code} from {before} to {name}"),
	define[ReferentialArchived]("archived referential {code}"),
	define[SitesChanged]("wrote sites of {referential} ({action}): {created} created, {updated} updated, {reactivated} reactivated, {deactivated} deactivated"),
	define[SyncCommitted]("wrote sites of {referential} ({action}, as staged in {sync}): {created} created, {updated} updated, {reactivated} reactivated, {deactivated} deactivated"),
	define[UnchangedWriteRecorded]("was asked to write sites of {referential} ({action}) and had nothing to change").with(recordOnly),
	define[LocationsEventVoided]("voided event {revision} of the places' stream ({type}), which cannot be used: {why}").with(recordOnly),
	define[SyncStaged]("staged rows of a sync"),

	define[UsageOpened]("opened the period from {first} of contract {contract} with {cap} requests"),
	define[UsageCapSet]("set the requests of {account} in the period to {cap}"),
	define[UsageKeyRevoked]("ended the counting of key {key}"),
	define[UsageAccountClosed]("ended the counting of {account}"),
	define[UsageTicked]("asked for requests to be counted on {day} ({incarnation} no. {sequence})"),
	define[UsageRefunded]("took back requests counted on {day} ({incarnation} no. {sequence})"),
	define[UsageSnapshotTaken]("repeated the state as of revision {asOf}: {used} requests"),
	define[UsageClosed]("closed the period with {total} requests"),
	define[UsageAdjusted]("adjusted {endpoint} with key {key} on {day} by {requests}"),
	define[InstanceStarted]("started as {incarnation}"),
	define[InstanceEnded]("ended {incarnation} in good order"),
}
