package customers

// Rule is what must hold, in words.
type Rule string

// The rules. This is the one list of what is checked.
const (
	NoPanic           Rule = "no handler panics"
	StatusAllowed     Rule = "an answer has a status that the specification allows for the request and what is known of the account"
	NoFailureAlone    Rule = "no answer is 5xx unless something fails, or did so a moment ago"
	NoStrangersData   Rule = "no account sees another's data"
	RevokedRefused    Rule = "a revoked key is refused on every instance a second later"
	ActiveAccepted    Rule = "a key that is not revoked is never called invalid"
	CapKept           Rule = "no period of an account counts more requests than its limit"
	NotRefusedEarly   Rule = "no request is refused for a quota that is not used up"
	ServedIsCounted   Rule = "what was served is counted, and what was not served is not, to the request"
	UsageAgrees       Rule = "the usage that an account sees is the usage that is billed"
	CountedStays      Rule = "what a period of an account counts changes only by requests"
	ReconcileAgrees   Rule = "reconciling the log with the usage that is shown finds no difference"
	WrittenIsThere    Rule = "what was acknowledged is there, what was refused is not, and what is unknown is there whole or not at all"
	InstancesAgree    Rule = "at a quiet moment all instances give the same answer"
	SameKeySameAnswer Rule = "the same Idempotency-Key with the same body gives the same answer"
	EveryoneAnswered  Rule = "at a quiet moment every account is answered by every instance"
	InstancesReady    Rule = "at a quiet moment every instance is ready and no part of it complains"
	ModelsMove        Rule = "at a quiet moment every read model serves, has caught up and has stopped no account"
	RebuildsEqual     Rule = "a read model that is filled again holds the same rows"
	AuditComplete     Rule = "every acknowledged change of an account is in its history once"
	ErasedUnreadable  Rule = "the name of an erased account is shown nowhere"
	EndsInTime        Rule = "what runs ends when it is told to"
)
