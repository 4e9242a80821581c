package scale

import (
	"context"
	"errors"

	"lieudit/cmd/bench/harness"
	"lieudit/schemas/plan"
)

// generateLog writes the accounts and their keys to the node's journal, which no process has open, and keeps a token of each account.
func (r *run) generateLog(ctx context.Context) (err error) {
	j, err := harness.OpenJournal(r.Path(nodeName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	accounts, err := harness.AppendAccounts(ctx, j, harness.AccountOptions{
		Accounts: r.Accounts, Keys: r.Keys, IDPrefix: "account-of-scale-", Written: r.reportProgress,
		Anchor: func(n int) plan.Date { return plan.Date{Year: 2026, Month: 1, Day: 1 + n%28} },
	})
	for _, a := range accounts {
		r.tokens = append(r.tokens, a.Token)
	}
	return err
}

// reportProgress shows every thousandth account that was written.
func (r *run) reportProgress(written int) {
	if written%1000 == 0 {
		r.Progress("accounts on the log", written, r.Accounts)
	}
}
