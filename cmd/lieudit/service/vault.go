package service

import (
	"context"
	"fmt"
	"path/filepath"

	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/vault"
)

// vaultLocation is where the vault is: a file of the data folder, or Postgres where the read models are there.
func (c Config) vaultLocation() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return filepath.Join(c.Data, vaultFile)
}

// RewrapVault encrypts all data keys with a new master key and returns how many. c.VaultKey is the present master key, nil
// where the data keys are in clear. No instance may run meanwhile; an embedded one is noticed by the lock of its folder
// (*dirlock.HeldError). All keys are changed, or none.
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
