package table

// Account is an account's row. Plan and Quota are in force until NextFrom, and Agency until NextAgencyFrom; from then on the
// Next fields are. So the row need not be rewritten when a scheduled change begins. Nor is it rewritten when an agency that it
// was to join is closed: readers compare NextAgencyFrom, or AgencyBegan, with Closed of the agency's row.
type Account struct {
	ID             string
	Name           string // personal
	Plan           string
	Quota          int64
	Anchor         string // first day of the first period, 2026-11-21
	NextPlan       string
	NextQuota      int64
	NextFrom       Instant
	Agency         string  // the account it is a sub-client of
	AgencyBegan    Instant // when Agency began, if that was scheduled before; otherwise 0
	NextAgency     string  // "" when it leaves one
	NextAgencyFrom Instant
	AgencyMode     bool // the account is an agency: it may have sub-clients
	Opened         Instant
	Closed         Instant
}

// Key is the row of an API key, secret or publishable. It holds no hash and no secret.
type Key struct {
	ID        string
	Account   string
	Kind      string // a token.Kind
	Label     string // personal
	Hint      string
	Origins   string // JSON array, "[]" for a secret key
	Token     string // of a publishable key only
	Created   Instant
	CreatedBy string
	Revoked   Instant
	RevokedBy string
	Reason    string // why it was revoked; personal
	Replaces  string // the id of the key whose place it takes
}

// Token is the row of a customer-area token. It holds no hash and no secret.
type Token struct {
	ID        string
	Role      string // a grant.Role
	Account   string
	Label     string // personal, as Reason, if it acts for an account
	Hint      string
	Created   Instant
	CreatedBy string
	Revoked   Instant
	RevokedBy string
	Reason    string
}

// Tables of AccountModel.
var (
	Accounts = Table[Account]{
		Def: Def{Name: "account", ViewName: "accounts", KeyColumns: 1, Indexes: []string{"agency"}, PersonalColumns: []string{"name"}, Columns: []Column{
			{"id", Text}, {"name", Text}, {"plan", Text}, {"quota", Integer}, {"anchor", Text},
			{"next_plan", Text}, {"next_quota", Integer}, {"next_from", Timestamp},
			{"agency", Text}, {"agency_began", Timestamp}, {"next_agency", Text}, {"next_agency_from", Timestamp},
			{"agency_mode", Boolean}, {"opened", Timestamp}, {"closed", Timestamp},
		}},
		Fields: func(a *Account) []any {
			return []any{&a.ID, &a.Name, &a.Plan, &a.Quota, &a.Anchor, &a.NextPlan, &a.NextQuota, &a.NextFrom,
				&a.Agency, &a.AgencyBegan, &a.NextAgency, &a.NextAgencyFrom, &a.AgencyMode, &a.Opened, &a.Closed}
		},
	}
	Keys = Table[Key]{
		Def: Def{Name: "api_key", ViewName: "keys", KeyColumns: 1, Indexes: []string{"account, created, id"}, PersonalColumns: []string{"label", "reason"}, Columns: []Column{
			{"id", Text}, {"account", Text}, {"kind", Text}, {"label", Text}, {"hint", Text}, {"origins", Text}, {"token", Text},
			{"created", Timestamp}, {"created_by", Text}, {"revoked", Timestamp}, {"revoked_by", Text}, {"reason", Text}, {"replaces", Text},
		}},
		Fields: func(k *Key) []any {
			return []any{&k.ID, &k.Account, &k.Kind, &k.Label, &k.Hint, &k.Origins, &k.Token,
				&k.Created, &k.CreatedBy, &k.Revoked, &k.RevokedBy, &k.Reason, &k.Replaces}
		},
	}
	Tokens = Table[Token]{
		Def: Def{Name: "area_token", ViewName: "tokens", KeyColumns: 1, PersonalColumns: []string{"label", "reason"}, Columns: []Column{
			{"id", Text}, {"role", Text}, {"account", Text}, {"label", Text}, {"hint", Text},
			{"created", Timestamp}, {"created_by", Text}, {"revoked", Timestamp}, {"revoked_by", Text}, {"reason", Text},
		}},
		Fields: func(t *Token) []any {
			return []any{&t.ID, &t.Role, &t.Account, &t.Label, &t.Hint,
				&t.Created, &t.CreatedBy, &t.Revoked, &t.RevokedBy, &t.Reason}
		},
	}
)

// AccountModel is the read model of accounts, keys and customer-area tokens, for lists. Authentication does not use it, but
// the key ring (projections/keyring).
var AccountModel = ReadModel{Name: "register", Version: 5, Tables: []Def{Accounts.Def, Keys.Def, Tokens.Def}}
