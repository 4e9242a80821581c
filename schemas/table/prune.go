package table

import (
	"context"
	"errors"
	"os"
)

// Prune drops the copies that no one uses: retired ones, and those of versions before the models'. It gives
// their names.
func (s *Registry) Prune(ctx context.Context, models ...ReadModel) ([]string, error) {
	var unused []Generation
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		all, err := Select(ctx, tx, generationTable, "where state <> 'dropped' and not exists (select 1 from holder where copy = name and until > "+tx.db.Now()+") order by name")
		if err != nil {
			return err
		}
		for _, c := range all {
			if !isOutdated(c, models) {
				continue
			}
			if err := s.dropGeneration(ctx, tx, c); err != nil {
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

func isOutdated(c Generation, models []ReadModel) bool {
	for _, m := range models {
		if c.Model == m.Name {
			return c.Version < int64(m.Version) ||
				c.Version == int64(m.Version) && (c.State == Retired || c.State == Creating)
		}
	}
	return false
}

// dropGeneration drops a copy. A query of somebody who does not know the registry is not waited for long: the whole registry
// would wait.
func (s *Registry) dropGeneration(ctx context.Context, tx *Tx, c Generation) error {
	if _, err := tx.Exec(ctx, "update copy set state = 'dropped' where name = ?", c.Name); err != nil {
		return err
	}
	if tx.supportsArrays() {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "drop schema if exists "+c.schemaName()+" cascade")
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(s.databaseAddress(c.Name) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
