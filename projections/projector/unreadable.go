package projector

import (
	"context"
	"slices"

	"lieudit/schemas/table"
)

// UnreadableAccounts are accounts that copies have stopped because a personal field did not open: the first ones after
// an account in the order of their ids, at most limit.
func (p *Projector) UnreadableAccounts(ctx context.Context, after string, limit int) (all []string, err error) {
	err = p.eachCopy(ctx, func(_ table.Copy, db *table.DB) error {
		rows, err := table.Select(ctx, db, table.AccountStatuses, "where kind = ? and account > ? order by account limit ?", table.AccountUnreadable, after, limit)
		for _, s := range rows {
			all = append(all, s.Account)
		}
		return err
	})
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(limit, len(all))], err
}
