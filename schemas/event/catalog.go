package event

// catalog holds every event type once. To add an event: its struct, and its line here.
var catalog = []Type{
	define[AccountOpened]("opened the account on plan {plan}"),
	define[PlanChanged]("changed the plan from {from} to {to} with {quota} requests a month, effective {effective}"),
	define[AgencyActivated]("activated agency mode"),
	define[AgencyJoined]("joined agency {agency}, effective {effective}"),
	define[AgencyLeft]("left agency {agency}, effective {effective}"),
	define[AccountClosed]("closed the account"),
	define[AccountErased]("erased the account's personal data"),
	define[SecretKeyIssued]("issued secret key {key} ({hint})"),
	define[PublishableKeyIssued]("issued publishable key {key} ({hint}) for {origins}"),
	define[KeyRevoked]("revoked key {key} ({hint})"),
	define[KeyOriginsChanged]("changed the origins of key {key} from {before} to {origins}"),
	define[AccountActionRefused]("was refused: {action} ({code})"),

	define[TokenIssued]("issued {role} token {token} ({hint})"),
	define[TokenRevoked]("revoked {role} token {token} ({hint})"),
}
