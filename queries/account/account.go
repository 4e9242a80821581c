// Package account answers which accounts, keys and customer-area tokens there are, from the read model that
// projections/account fills (table.AccountModel). Answers are as old as the read model is: a caller that must see its
// own write waits for its position first. Rows of stopped accounts are never shown.
//
// Lists are paged: a query reads one row more than the page holds (readPage), and if that row exists, the last row shown becomes
// the cursor of the next page. Accounts are then completed from their agencies (resolveAccounts).
package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// Reader answers from the read model. It is safe for concurrent use.
type Reader struct {
	registry *sqldb.Registry
	now      func() time.Time
}

// New makes a Reader of a registry's read model. Scheduled changes, such as new terms, take effect by now: rows hold the change
// and its instant, and no event marks the instant.
func New(registry *sqldb.Registry, now func() time.Time) *Reader { return &Reader{registry, now} }

var (
	// ErrNotFound means that there is no such account.
	ErrNotFound = errors.New("not in the register")
	// ErrInvalidCursor means that no list returned the cursor.
	ErrInvalidCursor = errors.New("not a cursor")
)

// Page is a part of a list. The cursor "" is that of the first page; as a result it means that there is no next page.
type Page struct {
	Cursor string
	Limit  int // at least 1
}

// Key is an API key, without its secret.
type Key struct {
	ID, Account string
	Kind        token.Kind
	Label, Hint string
	Origins     []string // that may use a publishable key
	Token       string   // a publishable key as it is sent; "" for a secret key
	Created     time.Time
	CreatedBy   string
	Revoked     time.Time // zero while it is valid
	RevokedBy   string
	Reason      string // why it was revoked
	Replaces    string // the id of the key whose place it takes
}

// Token is a customer-area token, without its secret.
type Token struct {
	ID          string
	Role        grant.Role
	Account     string // that it acts for; "" for none
	Label, Hint string
	Created     time.Time
	CreatedBy   string
	Revoked     time.Time // zero while it is valid
	RevokedBy   string
	Reason      string
}

// ListKeys returns the keys of an account, including revoked ones, the oldest first. It fails with a *table.StoppedError while
// the account is stopped.
func (k *Reader) ListKeys(ctx context.Context, account string, p Page) (found []Key, next string, err error) {
	created, id, err := parseCursor(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := readPage(ctx, k, account, table.Keys, p, keyCursor,
		"where account = ? and (created, id) > (?, ?) order by account, created, id", account, created, id)
	for _, row := range rows {
		key, keyErr := keyFromRow(row)
		found, err = append(found, key), errors.Join(err, keyErr)
	}
	return found, next, err
}

// ListTokens returns the customer-area tokens of all accounts, including revoked ones, the oldest first.
func (k *Reader) ListTokens(ctx context.Context, p Page) (found []Token, next string, err error) {
	created, id, err := parseCursor(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := readPage(ctx, k, "", table.Tokens, p, tokenCursor, "where (created, id) > (?, ?) and "+sqldb.ExcludeStoppedAccounts("'/token-' || id")+" order by created, id", created, id)
	for _, r := range rows {
		found = append(found, Token{r.ID, grant.Role(r.Role), r.Account, r.Label, r.Hint,
			r.Created.Time(), r.CreatedBy, r.Revoked.Time(), r.RevokedBy, r.Reason})
	}
	return found, next, err
}

// Actor is who made a command, as people know them.
type Actor struct {
	Name string     // the label of the token or of the key
	Role grant.Role // of a token
}

// FindActors returns who is behind the actors of events, such as token:ID and key:ID. Those that are not in the read model are left out.
// The label of what acted for an account is "" once the account is erased.
func (k *Reader) FindActors(ctx context.Context, actors []string) (map[string]Actor, error) {
	var tokens, keys []string
	for _, a := range actors {
		if id, ok := strings.CutPrefix(a, "token:"); ok {
			tokens = append(tokens, id)
		}
		if id, ok := strings.CutPrefix(a, "key:"); ok {
			keys = append(keys, id)
		}
	}
	found := map[string]Actor{}
	err := k.registry.Read(ctx, table.AccountModel, func(db *sqldb.DB) error {
		clear(found)
		tokenRows, err := sqldb.LoadByKeys(ctx, db, table.Tokens, tokens)
		if err != nil {
			return err
		}
		keyRows, err := sqldb.LoadByKeys(ctx, db, table.Keys, keys)
		for _, t := range tokenRows {
			found["token:"+t.ID] = Actor{t.Label, grant.Role(t.Role)}
		}
		for _, r := range keyRows {
			found["key:"+r.ID] = Actor{Name: r.Label}
		}
		return err
	})
	return found, err
}

// keyFromRow fails if the row's origins are not a JSON list.
func keyFromRow(r table.Key) (Key, error) {
	k := Key{r.ID, r.Account, token.Kind(r.Kind), r.Label, r.Hint, nil, r.Token,
		r.Created.Time(), r.CreatedBy, r.Revoked.Time(), r.RevokedBy, r.Reason, r.Replaces}
	if err := json.Unmarshal([]byte(r.Origins), &k.Origins); err != nil {
		return k, fmt.Errorf("origins of %s: %w", r.ID, err)
	}
	return k, nil
}

// readPage reads one page of rows, and the cursor of the next. account is the owner of the rows, or "" for rows of many
// accounts; in that case the clause leaves out stopped accounts.
func readPage[R any](ctx context.Context, k *Reader, account string, t table.Table[R], p Page, cursorOf func(R) string, clause string, args ...any) (rows []R, next string, err error) {
	err = k.registry.ReadAccount(ctx, table.AccountModel, account, func(db *sqldb.DB) error {
		rows, err = sqldb.Select(ctx, db, t, clause+" limit ?", append(args, p.Limit+1)...)
		return err
	})
	if err == nil && len(rows) > p.Limit {
		rows = rows[:p.Limit]
		next = cursorOf(rows[p.Limit-1])
	}
	return rows, next, err
}

func keyCursor(k table.Key) string     { return formatCursor(k.Created, k.ID) }
func tokenCursor(t table.Token) string { return formatCursor(t.Created, t.ID) }

// formatCursor makes a cursor of what lists are sorted by: the instant of creation in microseconds, then the id.
func formatCursor(created table.Instant, id string) string { return fmt.Sprintf("%d.%s", created, id) }

// parseCursor is the inverse of formatCursor. "" is before all rows. The id is not checked: it only marks where to continue.
func parseCursor(cursor string) (created int64, id string, err error) {
	if cursor == "" {
		return -1, "", nil
	}
	micros, id, _ := strings.Cut(cursor, ".")
	if created, err = strconv.ParseInt(micros, 10, 64); err != nil {
		return 0, "", ErrInvalidCursor
	}
	return created, id, nil
}

// Account is an account as it is now. A sub-client is an account that belongs to an agency, which is an account too: it has
// the plan and the anchor of its agency, and a quota of its own. The anchor is the day from which periods are counted.
type Account struct {
	ID           string
	Name         string // personal; "" once it was erased
	Plan         plan.Name
	Quota        int64
	Anchor       plan.Date
	Agency       string        // the account it is a sub-client of
	IsAgency     bool          // it may have sub-clients
	NextTerms    *NextTerms    // nil unless terms are scheduled and have not begun
	AgencyChange *AgencyChange // nil unless one is scheduled
	Opened       time.Time
	Closed       time.Time // zero while it is open
}

// NextTerms holds an account's own terms from an instant on.
type NextTerms struct {
	Plan  plan.Name
	Quota int64
	From  time.Time
}

// AgencyChange is the agency that an account has from an instant on, "" for none.
type AgencyChange struct {
	Agency string
	From   time.Time
}

// FindAccount returns one account, or ErrNotFound. It fails with a *table.StoppedError while the account or its agency is
// stopped.
func (k *Reader) FindAccount(ctx context.Context, id string) (Account, error) {
	rows, _, err := readPage(ctx, k, id, table.Accounts, Page{Limit: 1}, accountCursor, "where id = ?", id)
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Account{}, fmt.Errorf("account %q: %w", id, err)
	}
	found, stopped, err := k.resolveAccounts(ctx, rows)
	if err == nil {
		err = stopped
	}
	if err != nil {
		return Account{}, fmt.Errorf("account %q: %w", id, err)
	}
	return found[0], nil
}

// Filter selects accounts. The zero Filter selects all.
type Filter struct {
	Agency string // accounts that are or will be its sub-clients; "" for all
	Text   string // in the id or the name, whatever the case and the accents; "" for all
	Open   *bool  // only open ones, or only closed ones; nil for both
}

// matches reports whether the text of the filter is in the id or the name of an account.
func (f Filter) matches(r table.Account) bool {
	text := foldText(f.Text)
	return strings.Contains(foldText(r.ID), text) || strings.Contains(foldText(r.Name), text)
}

// foldText is a text in lower case without accents.
func foldText(text string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(text)))
}

// ListAccounts returns the accounts of a filter by id. It does not list an account that has left its agency, although its row
// names the former agency until its next event, nor one that was to join an agency that is now closed. The databases do not compare
// without accents, so the text is compared here. So a page may be short without being the last.
func (k *Reader) ListAccounts(ctx context.Context, f Filter, p Page) (found []Account, next string, err error) {
	agency := f.Agency
	where, args := "where id > ? and "+sqldb.ExcludeStoppedAccounts("id"), []any{p.Cursor}
	if agency != "" {
		where = "where (agency = ? and (next_agency_from = 0 or next_agency_from > ?) or next_agency = ?) and id > ? and " + sqldb.ExcludeStoppedAccounts("id")
		args = []any{agency, int64(table.InstantOf(k.now())), agency, p.Cursor}
	}
	if f.Open != nil {
		where += map[bool]string{true: " and closed = 0", false: " and closed <> 0"}[*f.Open]
	}
	rows, next, err := readPage(ctx, k, "", table.Accounts, p, accountCursor, where+" order by id", args...)
	if err != nil {
		return nil, "", err
	}
	if f.Text != "" {
		rows = slices.DeleteFunc(rows, func(r table.Account) bool { return !f.matches(r) })
	}
	found, _, err = k.resolveAccounts(ctx, rows)
	if agency != "" {
		found = slices.DeleteFunc(found, func(a Account) bool {
			return a.Agency != agency && (a.AgencyChange == nil || a.AgencyChange.Agency != agency)
		})
	}
	return found, next, err
}

func accountCursor(a table.Account) string { return a.ID }

// resolveAccounts turns rows into accounts as they are now, completed from their agencies. It leaves out accounts whose agency
// is stopped, because their terms are not known; stopped is then the *table.StoppedError of one such agency.
func (k *Reader) resolveAccounts(ctx context.Context, rows []table.Account) (found []Account, stopped, err error) {
	now := table.InstantOf(k.now())
	found = make([]Account, len(rows))
	agencies := map[string]*Account{}
	for _, row := range rows {
		for _, agency := range []string{row.Agency, row.NextAgency} {
			if agency != "" {
				agencies[agency] = nil
			}
		}
	}
	stoppedAgencies, err := k.loadAgencies(ctx, agencies, now)
	if err != nil {
		return nil, nil, err
	}
	for i, row := range rows {
		a, err := accountFromRow(withoutVoidJoins(row, agencies), now)
		if err != nil {
			return nil, nil, err
		}
		found[i] = a
	}
	found = slices.DeleteFunc(found, func(a Account) bool {
		s, ok := stoppedAgencies[a.Agency]
		if ok {
			stopped = &table.StoppedError{AccountStatus: s}
		}
		return ok
	})
	for i := range found {
		if agency := agencies[found[i].Agency]; agency != nil {
			found[i].Plan, found[i].Anchor = agency.Plan, agency.Anchor
		}
	}
	return found, stopped, nil
}

// loadAgencies reads the accounts whose ids are the keys of agencies into its values. It returns the stopped ones.
func (k *Reader) loadAgencies(ctx context.Context, agencies map[string]*Account, now table.Instant) (stopped map[string]table.AccountStatus, err error) {
	ids := make([]string, 0, len(agencies))
	for id := range agencies {
		ids = append(ids, id)
	}
	err = k.registry.Read(ctx, table.AccountModel, func(db *sqldb.DB) error {
		statuses, err := sqldb.LoadByKeys(ctx, db, table.AccountStatuses, ids)
		if err != nil {
			return err
		}
		stopped = map[string]table.AccountStatus{}
		for _, s := range statuses {
			if s.IsStopped() {
				stopped[s.Account] = s
			}
		}
		rows, err := sqldb.LoadByKeys(ctx, db, table.Accounts, ids)
		if err != nil {
			return err
		}
		for _, row := range rows {
			a, err := accountFromRow(row, now)
			if err != nil {
				return err
			}
			agencies[row.ID] = &a
		}
		return nil
	})
	return stopped, err
}

// withoutVoidJoins returns a row without the memberships that never begin because the agency was closed first.
func withoutVoidJoins(r table.Account, agencies map[string]*Account) table.Account {
	isVoid := func(agency string, began table.Instant) bool {
		a := agencies[agency]
		return agency != "" && a != nil && !a.Closed.IsZero() && table.InstantOf(a.Closed) < began
	}
	if isVoid(r.NextAgency, r.NextAgencyFrom) {
		r.NextAgency, r.NextAgencyFrom = "", 0
	}
	if isVoid(r.Agency, r.AgencyBegan) {
		r.Agency = ""
	}
	return r
}

// accountFromRow applies the scheduled changes that have begun. It fails if the anchor is not a date.
func accountFromRow(r table.Account, now table.Instant) (Account, error) {
	anchor, err := plan.ParseDate(r.Anchor)
	a := Account{
		ID: r.ID, Name: r.Name, Plan: plan.Name(r.Plan), Quota: r.Quota, Anchor: anchor,
		Agency: r.Agency, IsAgency: r.AgencyMode, Opened: r.Opened.Time(), Closed: r.Closed.Time(),
	}
	switch {
	case r.NextFrom > now:
		a.NextTerms = &NextTerms{plan.Name(r.NextPlan), r.NextQuota, r.NextFrom.Time()}
	case r.NextFrom != 0:
		a.Plan, a.Quota = plan.Name(r.NextPlan), r.NextQuota
	}
	switch {
	case r.NextAgencyFrom > now && r.NextAgency == r.Agency: // the join was withdrawn before it began, by an instance whose clock is ahead: nothing changes
	case r.NextAgencyFrom > now:
		a.AgencyChange = &AgencyChange{r.NextAgency, r.NextAgencyFrom.Time()}
	case r.NextAgencyFrom != 0:
		a.Agency = r.NextAgency
	}
	return a, err
}
