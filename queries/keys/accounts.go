package keys

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Account is an account as it stands now. A sub-client has its agency's plan and anchor.
type Account struct {
	ID         string
	Name       string // personal; "" once it was erased
	Plan       plan.Name
	Quota      int64
	Anchor     plan.Date
	Agency     string // the account it is a sub-client of
	AgencyMode bool   // it may have sub-clients
	Next       *Next  // terms that are settled and have not begun
	Joining    *Joining
	Opened     time.Time
	Closed     time.Time // zero while it is open
}

// Next are an account's own terms from an instant on.
type Next struct {
	Plan  plan.Name
	Quota int64
	From  time.Time
}

// Joining is the agency an account is to have from an instant on, "" for none.
type Joining struct {
	Agency string
	From   time.Time
}

// Account is one account, or ErrUnknown.
func (k *Keys) Account(ctx context.Context, id string) (Account, error) {
	rows, _, err := pageOf(ctx, k, id, table.Accounts, Page{Limit: 1}, accountPlace, "where id = ?", id)
	if err == nil && len(rows) == 0 {
		err = ErrUnknown
	}
	if err != nil {
		return Account{}, fmt.Errorf("account %q: %w", id, err)
	}
	found, stopped, err := k.standing(ctx, rows)
	if err == nil {
		err = stopped
	}
	if err != nil {
		return Account{}, fmt.Errorf("account %q: %w", id, err)
	}
	return found[0], nil
}

// Accounts are all accounts in the order of their ids, or those that are or will be sub-clients of an agency: one
// that has left is no longer its former agency's business, though its row says so until its next event.
func (k *Keys) Accounts(ctx context.Context, agency string, p Page) (found []Account, next string, err error) {
	where, args := "where id > ? and "+table.Running("id")+" order by id", []any{p.Cursor}
	if agency != "" {
		where = "where (agency = ? and (next_agency_from = 0 or next_agency_from > ?) or next_agency = ?) and id > ? and " + table.Running("id") + " order by id"
		args = []any{agency, int64(table.At(k.now())), agency, p.Cursor}
	}
	rows, next, err := pageOf(ctx, k, "", table.Accounts, p, accountPlace, where, args...)
	if err != nil {
		return nil, "", err
	}
	found, _, err = k.standing(ctx, rows)
	return found, next, err
}

func accountPlace(a table.Account) string { return a.ID }

// standing is how accounts stand now, with what they have from their agencies. Those whose agency is stopped are left out,
// for nobody knows what they have; stopped is why, if there are some.
func (k *Keys) standing(ctx context.Context, rows []table.Account) (found []Account, stopped, err error) {
	now := table.At(k.now())
	found = make([]Account, len(rows))
	agencies := map[string]*Account{}
	for i, row := range rows {
		a, err := accountOf(row, now)
		if err != nil {
			return nil, nil, err
		}
		found[i] = a
		if a.Agency != "" {
			agencies[a.Agency] = nil
		}
	}
	halted, err := k.load(ctx, agencies, now)
	if err != nil {
		return nil, nil, err
	}
	found = slices.DeleteFunc(found, func(a Account) bool {
		s, ok := halted[a.Agency]
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

// load reads the accounts whose ids are the keys of wanted, and which of them are stopped.
func (k *Keys) load(ctx context.Context, wanted map[string]*Account, now table.Instant) (stopped map[string]table.AccountStatus, err error) {
	ids := make([]string, 0, len(wanted))
	for id := range wanted {
		ids = append(ids, id)
	}
	err = k.shelf.Read(ctx, table.Register, func(db *table.DB) error {
		noted, err := table.Load(ctx, db, table.AccountStatuses, ids)
		if err != nil {
			return err
		}
		stopped = map[string]table.AccountStatus{}
		for _, s := range noted {
			if s.Stopped() {
				stopped[s.Account] = s
			}
		}
		rows, err := table.Load(ctx, db, table.Accounts, ids)
		if err != nil {
			return err
		}
		for _, row := range rows {
			a, err := accountOf(row, now)
			if err != nil {
				return err
			}
			wanted[row.ID] = &a
		}
		return nil
	})
	return stopped, err
}

func accountOf(r table.Account, now table.Instant) (Account, error) {
	anchor, err := plan.ParseDate(r.Anchor)
	a := Account{
		ID: r.ID, Name: r.Name, Plan: plan.Name(r.Plan), Quota: r.Quota, Anchor: anchor,
		Agency: r.Agency, AgencyMode: r.AgencyMode, Opened: r.Opened.Time(), Closed: r.Closed.Time(),
	}
	switch {
	case r.NextFrom > now:
		a.Next = &Next{plan.Name(r.NextPlan), r.NextQuota, r.NextFrom.Time()}
	case r.NextFrom != 0:
		a.Plan, a.Quota = plan.Name(r.NextPlan), r.NextQuota
	}
	switch {
	case r.NextAgencyFrom > now:
		a.Joining = &Joining{r.NextAgency, r.NextAgencyFrom.Time()}
	case r.NextAgencyFrom != 0:
		a.Agency = r.NextAgency
	}
	return a, err
}
