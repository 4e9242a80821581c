package table

import (
	"context"
	"errors"
	"os"
)

// Prune drops the copies that no one uses: retired ones, and those of versions before the models'. It gives
// their names.
func (s *Shelf) Prune(ctx context.Context, models ...Model) ([]string, error) {
	var unused []Copy
	err := s.change(ctx, func(tx *Tx) error {
		all, err := Select(ctx, tx, copies, "where state <> 'dropped' and not exists (select 1 from holder where copy = name and until > "+tx.db.Now()+") order by name")
		if err != nil {
			return err
		}
		for _, c := range all {
			if !outdated(c, models) {
				continue
			}
			if err := s.discard(ctx, tx, c); err != nil {
				return err
			}
			unused = append(unused, c)
		}
		return nil
	})
	names := make([]string, len(unused))
	for i, c := range unused {
		names[i] = c.Name
	}
	return names, err
}

func outdated(c Copy, models []Model) bool {
	for _, m := range models {
		if c.Model == m.Name {
			return c.Version < int64(m.Version) ||
				c.Version == int64(m.Version) && (c.State == Retired || c.State == Fresh)
		}
	}
	return false
}

// discard drops a copy. A query of somebody who does not know the registry is not waited for long: the whole registry
// would wait.
func (s *Shelf) discard(ctx context.Context, tx *Tx, c Copy) error {
	if _, err := tx.Exec(ctx, "update copy set state = 'dropped' where name = ?", c.Name); err != nil {
		return err
	}
	if tx.arrays() {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "drop schema if exists "+c.schema()+" cascade")
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(s.place(c.Name) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
