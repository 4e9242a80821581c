package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lieudit/eventstore/hold"
	"lieudit/eventstore/vault"
)

// maxFirstCheck is how long a start waits for the verdict on the vault. A first comparison with a log of millions of accounts takes longer:
// it goes on behind, and the instance is not ready before.
const maxFirstCheck = 3 * time.Second

// openKeys opens the vault, which is apart from the read models because it cannot be made again from the log. One that
// is not the log's is refused; one that cannot be reached may be there later.
func (s *service) openKeys(ctx context.Context) error {
	v, err := vault.New(s.vaultAddress(), s.VaultKey, s.Now)
	if err != nil {
		return err
	}
	s.keys = vault.Bind(v, s.logs.core, s.Log)
	s.closing(s.keys.Close)
	s.keys.AcceptLost, s.reopen = s.AcceptLost, make(chan struct{}, 1)
	s.keys.Changed = func() {
		select {
		case s.reopen <- struct{}{}:
		default: // it is told already
		}
	}
	ctx, cancel := context.WithTimeout(ctx, maxFirstCheck)
	defer cancel()
	err = s.keys.Check(ctx)
	var wrong *vault.WrongError
	if errors.As(err, &wrong) {
		return err
	}
	if err != nil {
		s.Log.Warn("starting without the vault of data keys", "reason", err)
	}
	return nil
}

// vaultAddress is where the vault is: beside everything embedded, or in Postgres with the read models.
func (c Config) vaultAddress() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return filepath.Join(c.Data, "vault.db")
}

// Rewrap wraps all data keys with a new master key, while no instance runs, and says how many. VaultKey is the master key
// they are wrapped with now, nil where they are in clear.
func Rewrap(ctx context.Context, c Config, master []byte) (keys int, err error) {
	if c.Postgres == "" {
		folder, err := hold.Folder(c.Data, c.Now())
		if err != nil {
			return 0, fmt.Errorf("data folder: %w", err)
		}
		defer folder.Close()
	}
	return vault.Rewrap(ctx, c.vaultAddress(), c.VaultKey, master)
}
