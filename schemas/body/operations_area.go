package body

import (
	"net/http"
	"slices"

	"lieudit/schemas/body/openapi"
	"lieudit/schemas/refusal"
)

const accountIDPattern = "^[a-z0-9-]{1,64}$"

// CustomerArea documents the customer area as API documents the API. Its golden file is customer-area.json.
func CustomerArea() openapi.API {
	api := openapi.API{
		Title:       "lieudit: customer area",
		Description: "Accounts, keys, usage, customer-area tokens, history, read models and the data that is served. " + textRule,
		BasePath:    "/customer-area/v1",
		Tags: []openapi.Tag{
			{Name: "Tokens", Doc: "Customer-area tokens and their roles.", Prefixes: []string{"/tokens"}},
			{Name: "Sessions", Doc: "How people come in with a browser.", Prefixes: []string{"/sessions", "/invitations"}},
			{Name: "Keys", Doc: "Secret and publishable keys of an account.", Prefixes: []string{"/accounts/{id}/keys", "/accounts/{id}/origins"}},
			{Name: "Usage", Doc: "What counts, what is billed, and its corrections.", Prefixes: []string{"/usage", "/accounts/{id}/usage"}},
			{Name: "History", Doc: "What happened to an account, and how it stood.", Prefixes: []string{"/accounts/{id}/history", "/accounts/{id}/state"}},
			{Name: "Accounts", Doc: "Accounts, their plans and their agencies.", Prefixes: []string{"/accounts"}},
			{Name: "Read models", Doc: "How the read models stand, and their repair.", Prefixes: []string{"/projections"}},
			{Name: "Upgrades", Doc: "The instances that run, and the format of the log.", Prefixes: []string{"/upgrade"}},
			{Name: "Served data", Doc: "The address base and the road networks that are served, and what works.", Prefixes: []string{"/vintages", "/networks", "/readiness"}},
		},
		Security:   "A customer-area token; its role says which operations, its account on what. In a browser, the cookie of a session of it instead (POST /sessions).",
		Operations: slices.Concat(tokenOperations(), accountOperations(), keyOperations(), usageOperations(), auditOperations(), releaseOperations()),
		Variables: map[string]openapi.Variable{
			"id":      {Pattern: accountIDPattern, Doc: "Of the account"},
			"key":     {Doc: "The key's id, never the key"},
			"token":   {Doc: "The token's id, never the token"},
			"session": {Doc: "The session's id"},
			"name":    {Doc: "Of the read model"},
		},
	}
	for i, op := range api.Operations {
		if op.Method != http.MethodGet {
			api.Operations[i].Failures = append(op.Failures, exampleFailures(refusal.ForeignPage)...)
		}
	}
	return api
}

func tokenOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: "/tokens", Summary: "Issue a customer-area token; its text is in this answer alone",
			Body: IssueToken{}, Status: 201, Answer: AreaToken{}, Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.BodyTooLarge)},
		{Method: "GET", Path: "/tokens", Summary: "The customer-area tokens", Query: PageQuery{}, Answer: AreaTokens{}, Failures: areaFailures()},
		{Method: "POST", Path: "/tokens/{token}:revoke", Summary: "End a customer-area token for good; twice is once",
			Body: RevokeToken{}, Answer: AreaToken{}, Failures: areaFailures(refusal.NotFound, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/sessions", Summary: "Open a session with a link or a token, as the cookie of the answer", IsPublic: true,
			Body: OpenSession{}, Status: 201, Answer: Session{}, Failures: publicAreaFailures(refusal.LinkInvalid, refusal.LoginUnencrypted, refusal.UpgradeUnfinished, refusal.TooManySessions, refusal.TooManyLogins, refusal.BodyTooLarge)},
		{Method: "GET", Path: "/sessions", Summary: "The sessions of one's own token", Query: Empty{}, Answer: Sessions{}, Failures: areaFailures()},
		{Method: "DELETE", Path: "/sessions", Summary: "End all sessions of one's own token, and its links that were not used", Query: Empty{}, Answer: Envelope{}, Failures: areaFailures()},
		{Method: "DELETE", Path: "/sessions/{session}", Summary: "End a session of one's own token", Query: Empty{}, Answer: Envelope{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "POST", Path: "/sessions:link", Summary: "Make a link for a session of one's own token, valid for 15 minutes",
			Body: Empty{}, Status: 201, Answer: SessionLink{}, Failures: areaFailures(refusal.LoginUnencrypted, refusal.UpgradeUnfinished, refusal.TooManySessions, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/invitations", Summary: "Make a token for somebody else, and a link for their first session, valid for 7 days",
			Body: Invite{}, Status: 201, Answer: SessionLink{}, Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.LoginUnencrypted, refusal.UpgradeUnfinished, refusal.BodyTooLarge)},
	}
}

func accountOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: "/accounts", Summary: "Open an account", Body: OpenAccount{}, Status: 201, Answer: Account{},
			Failures: areaFailures(refusal.BodyTooLarge, refusal.AccountExists, refusal.AgencyUnknown, refusal.NestedAgency)},
		{Method: "GET", Path: "/accounts", Summary: "The accounts; for an agency, its sub-clients", Query: AccountsQuery{}, Answer: Accounts{}, Failures: areaFailures()},
		{Method: "GET", Path: "/accounts/{id}", Summary: "An account", Query: Empty{}, Answer: Account{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "POST", Path: "/accounts/{id}:plan", Summary: "Change the plan: an upgrade acts now, a downgrade at the next period",
			Body: ChangePlan{}, Answer: Account{}, Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.PlanOfAgency, refusal.NotSubClient, refusal.SubClientLeaving, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/accounts/{id}:close", Summary: "Close the account and end its keys for good",
			Body: CloseAccount{}, Answer: Account{}, Failures: areaFailures(refusal.NotFound, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/accounts/{id}:erase", Summary: "Make the personal data of a closed account unreadable for good; twice is once",
			Body: EraseAccount{}, Answer: Account{},
			Failures: areaFailures(refusal.NotFound, refusal.AccountOpen, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/accounts/{id}:agency", Summary: "Activate agency mode, join an agency or leave it",
			Body: ChangeAgency{}, Answer: Account{},
			Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.AgencyUnknown, refusal.NestedAgency, refusal.AlreadySubClient, refusal.NotSubClient, refusal.LeavingUnconfirmed, refusal.BodyTooLarge)},
	}
}

func keyOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: "/accounts/{id}/keys", Summary: "Issue a key; the text of a secret one is in this answer alone",
			Headers: []openapi.Header{issueKeyHeader}, Body: IssueKey{}, Status: 201, Answer: Key{},
			Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.AgencyClosed, refusal.KeysOverCapacity, refusal.KeyRevoked, refusal.KeyReplaced, refusal.UpgradeUnfinished,
				refusal.BodyTooLarge, refusal.IdempotencyMismatch, refusal.OriginInvalid, refusal.TooManyOrigins)},
		{Method: "GET", Path: "/accounts/{id}/keys", Summary: "The account's keys, with their labels", Query: PageQuery{}, Answer: Keys{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "GET", Path: "/accounts/{id}/keys/{key}", Summary: "A key", Query: Empty{}, Answer: Key{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "POST", Path: "/accounts/{id}/keys/{key}:revoke", Summary: "End a key for good; twice is once",
			Body: RevokeKey{}, Answer: Key{}, Failures: areaFailures(refusal.NotFound, refusal.BodyTooLarge)},
		{Method: "PUT", Path: "/accounts/{id}/keys/{key}/origins", Summary: "Replace the origins of a publishable key; the key stays",
			Body: ChangeOrigins{}, Answer: Key{},
			Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.KeyRevoked, refusal.OriginsOnSecretKey,
				refusal.BodyTooLarge, refusal.OriginInvalid, refusal.TooManyOrigins)},
		{Method: "POST", Path: "/accounts/{id}/origins:check", Summary: "Judge origins as declaring them would, one by one; nothing is changed",
			Body: CheckOrigins{}, Answer: OriginVerdicts{}, Failures: areaFailures(refusal.NotFound, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/accounts/{id}/keys/{key}/origins:test", Summary: "Tell which origin of a publishable key admits a page, or the 403 that it gets; nothing is changed or counted",
			Body: TestOrigin{}, Answer: OriginTest{},
			Failures: areaFailures(refusal.NotFound, refusal.AccountClosed, refusal.KeyRevoked, refusal.OriginsOnSecretKey, refusal.BodyTooLarge)},
	}
}

var issueKeyHeader = openapi.Header{
	Name: idempotencyKeyHeader.Name, Pattern: idempotencyKeyHeader.Pattern,
	Doc: "Within 24 hours the same key with the same request and the same token gets the same answer, the secret included, and no second key is issued; once the key is revoked it is 409",
}

func usageOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/accounts/{id}/usage", Summary: "What counts for the account in a period",
			Query: UsageQuery{}, Answer: Usage{}, OtherMediaTypes: []string{"text/csv"}, Failures: areaFailures(refusal.NotFound)},
		{Method: "GET", Path: "/accounts/{id}/usage/periods", Summary: "The running period of the account, and those in which something was counted",
			Query: Empty{}, Answer: UsagePeriods{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "GET", Path: "/accounts/{id}/usage/lines", Summary: "What the figures of a period are made of: each counting, taking back and correction, as the log holds it",
			Query: UsageCountsQuery{}, Answer: UsageCounts{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "GET", Path: "/usage", Summary: "What counts for all accounts, for invoices; large answers come as they are read",
			Query: ExportQuery{}, Answer: BilledUsage{}, OtherMediaTypes: []string{"text/csv", "application/x-ndjson"}, Failures: areaFailures()},
		{Method: "GET", Path: "/usage/periods", Summary: "The periods of all contracts, and how far they are", Query: PeriodsQuery{}, Answer: Periods{}, Failures: areaFailures()},
		{Method: "POST", Path: "/usage:reconcile", Summary: "Fold the log anew and compare it with what is shown and billed",
			Body: ReconcileUsage{}, Answer: Reconciliation{}, Failures: areaFailures(refusal.BodyTooLarge)},
		{Method: "POST", Path: "/usage:adjust", Summary: "Correct a line of a closed period; the answer is the line as it stands then",
			Body: AdjustUsage{}, Answer: BilledLine{},
			Failures: areaFailures(refusal.NotFound, refusal.BodyTooLarge, refusal.PeriodNotClosed, refusal.DayOutsidePeriod, refusal.AccountNotInContract, refusal.AdjustmentBelowZero, refusal.AdjustmentZero)},
	}
}

func auditOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/accounts/{id}/history", Summary: "All that happened to the account, oldest first or newest first",
			Query: HistoryQuery{}, Answer: History{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "GET", Path: "/accounts/{id}/state", Summary: "The account as it stood at an instant",
			Query: StateQuery{}, Answer: State{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "GET", Path: "/projections", Summary: "How the read models stand", Query: Empty{}, Answer: Projections{}, Failures: areaFailures()},
		{Method: "POST", Path: "/projections/{name}:rebuild", Summary: "Fill a fresh copy of a read model while the other serves",
			Body: Empty{}, Status: 202, Answer: Projections{}, Failures: areaFailures(refusal.NotFound)},
		{Method: "POST", Path: "/projections:repair", Summary: "Void the events of an account that cannot be used, by corrections on its streams, and write its rows again",
			Body: Repair{}, Answer: Repaired{}, Failures: areaFailures(refusal.NotFound, refusal.BodyTooLarge)},
		{Method: "POST", Path: "/projections:rebuild", Summary: "Fill a fresh copy of every read model while the others serve",
			Body: Empty{}, Status: 202, Answer: Projections{}, Failures: areaFailures()},
		{Method: "POST", Path: "/projections:prune", Summary: "Drop the copies of read models that nobody reads",
			Body: Empty{}, Answer: Projections{}, Failures: areaFailures()},
		{Method: "GET", Path: "/upgrade", Summary: "How far an upgrade of the program is", Query: Empty{}, Answer: Upgrade{}, Failures: areaFailures()},
		{Method: "POST", Path: "/upgrade:finish", Summary: "Let every instance write what older programs cannot read; there is no way back, twice is once",
			Body: Empty{}, Answer: Upgrade{}, Failures: areaFailures(refusal.UpgradeBlocked)},
	}
}

func releaseOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/vintages", Summary: "The vintage of the address base that is served", Query: Empty{}, Answer: ServedVintages{}, Failures: areaFailures()},
		{Method: "GET", Path: "/networks", Summary: "The road networks that are served", Query: Empty{}, Answer: ServedNetworks{}, Failures: areaFailures()},
		{Method: "GET", Path: "/readiness", Summary: "What works on the instance that answers, and what can be done about the rest", Query: ReadinessQuery{}, Answer: Readiness{}, Failures: areaFailures()},
	}
}
