package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/vault"
)

// firstVaultCheckTimeout is how long a start waits for the verdict on the vault. A first comparison with a log of millions of accounts takes longer:
// it goes on behind, and the instance is not ready before.
const firstVaultCheckTimeout = 3 * time.Second

// openVault opens the vault, which is apart from the read models because it cannot be made again from the log. One that
// is not the log's is refused; one that cannot be reached may be there later.
func (s *service) openVault(ctx context.Context) error {
	v, err := vault.New(s.vaultLocation(), s.VaultKey, s.Now)
	if err != nil {
		return err
	}
	s.vault = vault.Bind(v, s.logs.core, s.Log)
	s.onClose(s.vault.Close)
	s.vault.AcceptLostKeys, s.vaultChanged = s.AcceptLostKeys, make(chan struct{}, 1)
	s.vault.OnValid = func() {
		select {
		case s.vaultChanged <- struct{}{}:
		default: // it is told already
		}
	}
	ctx, cancel := context.WithTimeout(ctx, firstVaultCheckTimeout)
	defer cancel()
	err = s.vault.Check(ctx)
	var wrongVault *vault.WrongError
	if errors.As(err, &wrongVault) {
		return err
	}
	if err != nil {
		s.Log.Warn("starting without the vault of data keys", "reason", err)
	}
	return nil
}

// vaultLocation is where the vault is: beside everything embedded, or in Postgres with the read models.
func (c Config) vaultLocation() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return filepath.Join(c.Data, "vault.db")
}

// RewrapVault wraps all data keys with a new master key, while no instance runs, and says how many. VaultKey is the master key
// they are wrapped with now, nil where they are in clear.
func RewrapVault(ctx context.Context, c Config, master []byte) (keys int, err error) {
	if c.Postgres == "" {
		folder, err := dirlock.Acquire(c.Data, c.Now())
		if err != nil {
			return 0, fmt.Errorf("data folder: %w", err)
		}
		defer folder.Close()
	}
	return vault.Rewrap(ctx, c.vaultLocation(), c.VaultKey, master)
}
