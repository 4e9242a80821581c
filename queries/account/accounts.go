package account

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Account is an account as it stands now. A sub-client has its agency's plan and anchor.
type Account struct {
	ID           string
	Name         string // personal; "" once it was erased
	Plan         plan.Name
	Quota        int64
	Anchor       plan.Date
	Agency       string     // the account it is a sub-client of
	IsAgency     bool       // it may have sub-clients
	NextTerms    *NextTerms // terms that are settled and have not begun
	AgencyChange *AgencyChange
	Opened       time.Time
	Closed       time.Time // zero while it is open
}

// NextTerms are an account's own terms from an instant on.
type NextTerms struct {
	Plan  plan.Name
	Quota int64
	From  time.Time
}

// AgencyChange is the agency an account is to have from an instant on, "" for none.
type AgencyChange struct {
	Agency string
	From   time.Time
}

// FindAccount is one account, or ErrUnknown.
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

// ListAccounts are all accounts in the order of their ids, or those that are or will be sub-clients of an agency: one
// that has left is no longer its former agency's business, though its row says so until its next event.
func (k *Reader) ListAccounts(ctx context.Context, agency string, p Page) (found []Account, next string, err error) {
	where, args := "where id > ? and "+sqldb.ExcludeStoppedAccounts("id")+" order by id", []any{p.Cursor}
	if agency != "" {
		where = "where (agency = ? and (next_agency_from = 0 or next_agency_from > ?) or next_agency = ?) and id > ? and " + sqldb.ExcludeStoppedAccounts("id") + " order by id"
		args = []any{agency, int64(table.InstantOf(k.now())), agency, p.Cursor}
	}
	rows, next, err := readPage(ctx, k, "", table.Accounts, p, accountCursor, where, args...)
	if err != nil {
		return nil, "", err
	}
	found, _, err = k.resolveAccounts(ctx, rows)
	return found, next, err
}

func accountCursor(a table.Account) string { return a.ID }

// resolveAccounts is how accounts stand now, with what they have from their agencies. Those whose agency is stopped are left out,
// for nobody knows what they have; stopped is why, if there are some.
func (k *Reader) resolveAccounts(ctx context.Context, rows []table.Account) (found []Account, stopped, err error) {
	now := table.InstantOf(k.now())
	found = make([]Account, len(rows))
	agencies := map[string]*Account{}
	for i, row := range rows {
		a, err := accountFromRow(row, now)
		if err != nil {
			return nil, nil, err
		}
		found[i] = a
		if a.Agency != "" {
			agencies[a.Agency] = nil
		}
	}
	stoppedAgencies, err := k.loadAgencies(ctx, agencies, now)
	if err != nil {
		return nil, nil, err
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

// loadAgencies reads the accounts whose ids are the keys of wanted, and which of them are stopped.
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
	case r.NextAgencyFrom > now:
		a.AgencyChange = &AgencyChange{r.NextAgency, r.NextAgencyFrom.Time()}
	case r.NextAgencyFrom != 0:
		a.Agency = r.NextAgency
	}
	return a, err
}
