package model

// Rule is a rule that must hold, in words.
type Rule string

// These rules are checked on each answer, and on the log messages of an instance.
const (
	NoPanic           Rule = "no handler panics"
	NoFailureAlone    Rule = "no answer is 5xx unless something fails, or did so a moment ago"
	KnownStatus       Rule = "an answer is one of those that the specification has for the request"
	RevokedIsRefused  Rule = "a revoked key is refused on every instance a second later"
	ActiveIsAccepted  Rule = "an active key is accepted on every instance a second after it was issued"
	PlanIsHeld        Rule = "a plan gives access to what it includes, and to nothing else"
	ScopeIsHeld       Rule = "a publishable key opens the search alone, from its origins"
	LinkOpensOnce     Rule = "a link opens one session, however often it is used"
	RoleIsHeld        Rule = "a token does what its role may, on its own account"
	NoForeignData     Rule = "no account sees another's data"
	NeverAboveCap     Rule = "nothing is answered above a cap"
	NoEarlyRefusal    Rule = "a 429 is early by no more than what is on its way"
	OneOrder          Rule = "one order of the commands explains all their answers"
	SameKeySameAnswer Rule = "the same Idempotency-Key gives the same answer"
	StableIDs         Rule = "the id of a site never changes"
	WholeContents     Rule = "a site is shown as somebody wrote it, whole"
	AnswersPromptly   Rule = "an answer takes no more than half a second of elapsed time unless something fails, or did so a moment ago"
	NothingPassedOver Rule = "an account with an event that nobody can decode is not shown as if that event were not there"
	OwnFilesAreUsed   Rule = "an instance leaves its files for the next run, and can use those that its earlier runs left"
	OneAnswer         Rule = "a question about addresses or roads has one answer, whoever is asked and whenever"
	FindsAddress      Rule = "an address of the vintage is found by its text and by its id"
	PlacedAtAddress   Rule = "a site is where its customer said, or else where its address is, or that is never found"
	WriterSeesIt      Rule = "who wrote a site finds it as it was written, or as others made it since"
)

// These rules are checked at quiet moments.
const (
	EveryAccountAnswers Rule = "at a quiet moment every account is answered by every instance"
	InstancesAgree      Rule = "at a quiet moment all instances give the same answer"
	InstancesReady      Rule = "at a quiet moment every instance is ready and no part of it complains"
	AcknowledgedIsThere Rule = "what was acknowledged is there, what was refused is not, and what is unknown is there whole or not at all"
	SearchFinds         Rule = "a search finds the sites of the account, each once, and no others"
	ChangesTellAll      Rule = "who follows the changes knows all sites as they are"
	UsageIsServed       Rule = "usage is what was served, to the request"
	BilledByContract    Rule = "a request is billed to the contract and the period it was made in"
	UsageAgrees         Rule = "the usage that an account sees is the usage that is billed"
	ClosedStays         Rule = "what is billed of a closed period is what its closing says, and corrections"
	EverybodySeesIt     Rule = "at a quiet moment every instance shows a second later what was written"
	ListsShowIt         Rule = "lists of accounts and tokens show each that there is, once, as it is"
	ExportsAgree        Rule = "an export has the same lines in every form, and of one period those of that period"
	AuditTellsOnce      Rule = "the audit tells every acknowledged command, once"
	ErasedUnreadable    Rule = "the name of an erased account is shown nowhere"
	Reconciles          Rule = "reconciling the log with the usage that is shown finds no difference"
	ProjectionsMove     Rule = "at a quiet moment every read model serves, has caught up and has stopped no account"
	CheckpointsGoOn     Rule = "the checkpoint of a read model never goes back"
	RebuildsEqual       Rule = "a read model that is filled again holds the same rows"
	RebuildsEnd         Rule = "a read model that is filled again serves from the new rows a moment later"
	EndsInTime          Rule = "what runs ends when it is told to"
)

// Rules lists every rule that is checked.
func Rules() []Rule {
	return []Rule{
		NoPanic, NoFailureAlone, KnownStatus, RevokedIsRefused, ActiveIsAccepted, LinkOpensOnce, PlanIsHeld, ScopeIsHeld, RoleIsHeld, NoForeignData,
		NeverAboveCap, NoEarlyRefusal, OneOrder, SameKeySameAnswer, StableIDs, WholeContents, NothingPassedOver, OneAnswer, FindsAddress, PlacedAtAddress,
		WriterSeesIt, AnswersPromptly, OwnFilesAreUsed,
		EveryAccountAnswers, InstancesAgree, InstancesReady, AcknowledgedIsThere, SearchFinds, ChangesTellAll, UsageIsServed, BilledByContract,
		UsageAgrees, ClosedStays, EverybodySeesIt, ListsShowIt, ExportsAgree, AuditTellsOnce, ErasedUnreadable, Reconciles, ProjectionsMove, CheckpointsGoOn, RebuildsEqual, RebuildsEnd, EndsInTime,
	}
}
