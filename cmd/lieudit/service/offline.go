package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/backup"
	"lieudit/cmd/lieudit/instance"
	"lieudit/commands"
	"lieudit/commands/areatoken"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// recoverMetadata is the author of a recovery in the audit: somebody who can write the data folder and holds no token.
var recoverMetadata = commands.Metadata{Actor: eventstore.SystemActor, Reason: "token recover"}

// RecoveredToken is a new operator token. Its file holds it; Revoked counts the operator tokens that ended with it.
type RecoveredToken struct {
	ID, File string
	Revoked  int
}

// RecoverOperatorToken issues a new operator token without one: the right to write the data folder is enough. It replaces the
// file operator-token of the folder. With revokeOthers all other operator tokens are revoked; otherwise they stay valid. It needs the
// journal of the data folder for itself (*dirlock.HeldError while a service runs), or c.EventStore, next to which services may run.
// Of the configuration it uses Data, EventStore, TokenPrefixes, Log and Now.
//
// The file is written before the event, as at a first start: the log keeps only a hash. If the event was written and the file was not
// renamed, nobody can use the token; the next call issues another.
func RecoverOperatorToken(ctx context.Context, c Config, revokeOthers bool) (recovered RecoveredToken, err error) {
	log, closeLog, err := openCoreLog(ctx, c)
	if err != nil {
		return recovered, err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	if _, err := deployment.New(log, eventstore.NewCodec(nil), Version()).CheckFormat(ctx); err != nil {
		return recovered, err
	}
	tokens := areatoken.New(log, eventstore.NewCodec(nil), c.TokenPrefixes, c.Now) // operators' tokens do not belong to an account: nothing in them is sealed, and no vault is needed
	recovered = RecoveredToken{ID: uuid.Must(uuid.NewV7()).String(), File: filepath.Join(c.Data, instance.OperatorTokenFile)}
	draft := recovered.File + ".draft"
	secret := c.TokenPrefixes.New(token.Area)
	if err := writeSecretFile(draft, secret); err != nil {
		return recovered, err
	}
	request := areatoken.TokenRequest{Role: grant.RoleOperator, Label: "recovered operator"}
	if _, err := tokens.Claim(ctx, recoverMetadata, recovered.ID, secret, request); err != nil {
		return recovered, fmt.Errorf("issuing the token: %w", errors.Join(err, os.Remove(draft)))
	}
	if err := osfile.Rename(draft, recovered.File); err != nil {
		return recovered, err
	}
	if revokeOthers {
		recovered.Revoked, err = revokeOperatorTokens(ctx, log, tokens, recovered.ID)
	}
	return recovered, err
}

// openCoreLog opens the log of accounts, keys and tokens for a command that works without a service. On the journal it locks the
// data folder. A folder without a log is an error: it makes none.
func openCoreLog(ctx context.Context, c Config) (log eventstore.Store, closeLog func() error, err error) {
	if c.EventStore != "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return nil, nil, fmt.Errorf("data folder: %w", err)
		}
		server, err := esdb.Open(ctx, c.EventStore, c.Log)
		if err != nil {
			return nil, nil, fmt.Errorf("event store: %w", err)
		}
		return server, server.Close, nil
	}
	if _, err := os.Stat(filepath.Join(c.Data, coreLogFolder)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("there is no log in %s: name the data folder of the service with --data", c.Data)
	}
	if err := backup.CheckFinished(c.Data); err != nil {
		return nil, nil, err
	}
	folder, err := dirlock.Acquire(c.Data, c.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("data folder: %w", err)
	}
	core, err := openJournal(c, coreLogFolder, nil)
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	return core, func() error { return errors.Join(core.Close(), folder.Close()) }, nil
}

// writeSecretFile writes a secret to a file that only its owner can read, and syncs it.
func writeSecretFile(path, secret string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have been made readable by others
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.WriteString(secret + "\n")
	return errors.Join(err, out.Sync(), out.Close())
}

// revokeOperatorTokens revokes all operator tokens but one and returns how many.
func revokeOperatorTokens(ctx context.Context, log eventstore.Store, tokens *areatoken.Tokens, kept string) (int, error) {
	active, err := listOperatorTokens(ctx, log)
	if err != nil {
		return 0, fmt.Errorf("listing the other tokens: %w", err)
	}
	delete(active, kept)
	for i, id := range slices.Sorted(maps.Keys(active)) {
		if _, _, err := tokens.Revoke(ctx, recoverMetadata, id); err != nil {
			return i, fmt.Errorf("revoking the token %s: %w", id, err)
		}
	}
	return len(active), nil
}

// listOperatorTokens reads from the log the ids of the operator tokens that are valid.
func listOperatorTokens(ctx context.Context, log eventstore.Store) (map[string]bool, error) {
	active := map[string]bool{}
	for s, err := range log.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{areatoken.Aggregate.Category}) {
		if err != nil {
			return nil, err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		decoded, err := eventstore.DecodeSealed(s.Event)
		if err != nil {
			return nil, err
		}
		switch e := decoded.(type) {
		case event.TokenIssued:
			if e.Role == string(grant.RoleOperator) {
				active[e.Token] = true
			}
		case event.TokenRevoked:
			delete(active, e.Token)
		}
	}
	return active, nil
}

// vaultLocation returns the location of the vault: Postgres if the read models are there, otherwise a file of the data folder.
func (c Config) vaultLocation() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return filepath.Join(c.Data, vaultFile)
}

// RewrapVault encrypts all data keys with a new master key and returns how many. c.VaultKey is the current master key, nil
// if the data keys are in clear. No instance may run meanwhile; an embedded one is detected by the lock of its folder
// (*dirlock.HeldError). Either all keys are changed or none.
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
