package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// This file writes logs by the codec and the journal of the service, for benchmarks of logs that would take hours to write over HTTP:
//
//	BootstrapNode, or a service that is stopped ──> OpenJournal ──> AppendAccounts ──> services that start on the log

// vaultFile is the file of the vault in an instance's folder.
const vaultFile = "vault.db"

// BootstrapNode lets an instance called first make the log of a new node what the service needs, and ends both. Instances of the other names
// get a folder with a copy of its vault and nothing else, since a log has one vault.
func BootstrapNode(ctx context.Context, w WorkDir, node, first string, others ...string) (err error) {
	n, err := StartNode(ctx, w, node)
	if err != nil {
		return err
	}
	defer n.Kill()
	if err := BootstrapInstance(ctx, w, first, w.NodeFlags(node)...); err != nil {
		return err
	}
	if err := n.Stop(); err != nil {
		return err
	}
	vault, err := os.ReadFile(filepath.Join(w.Path(first), vaultFile))
	for _, name := range others {
		err = errors.Join(err, os.Mkdir(w.Path(name), 0o700), os.WriteFile(filepath.Join(w.Path(name), vaultFile), vault, 0o600))
	}
	return err
}

// BootstrapInstance lets an instance make its folder and its log what the service needs, and ends it.
func BootstrapInstance(ctx context.Context, w WorkDir, name string, flags ...string) error {
	in, err := StartInstance(ctx, w, name, AnyPort, append(flags, "--drain", "0s")...)
	if err != nil {
		return err
	}
	defer in.Kill()
	if err := in.WaitReady(ctx); err != nil {
		return err
	}
	if _, err := ReadOperatorToken(ctx, in.DataDir); err != nil {
		return err
	}
	return in.Stop()
}

// OpenJournal opens a journal that no process has open. It must be closed before one is started.
func OpenJournal(folder string) (*journal.Journal, error) {
	return journal.Open(folder, journal.Options{Logger: slog.New(slog.DiscardHandler)})
}

// Account is an account that AppendAccounts has opened, with its last key.
type Account struct {
	ID     string
	Anchor plan.Date
	Key    string // the key's id
	Token  string // its text
}

// AccountOptions say what AppendAccounts opens. All are required.
type AccountOptions struct {
	Accounts int
	Keys     int                   // of all accounts together, at least one of each; they are spread evenly
	IDPrefix string                // of the ids of accounts
	Anchor   func(n int) plan.Date // of the n-th account
	Written  func(accounts int)    // is called with how many were written, by several goroutines
}

// concurrentAppends is how many appends are under way at once. They share syncs of the disk.
const concurrentAppends = 512

// AppendAccounts opens accounts without a limit on a log that no service uses. An account is one append: its opening and all its keys.
// Names and labels are empty: to read them the instances would need a data key of each account in their vaults.
func AppendAccounts(ctx context.Context, log eventstore.Store, o AccountOptions) ([]Account, error) {
	codec := eventstore.NewCodec(nil) // there are no personal texts
	accounts := make([]Account, o.Accounts)
	var written atomic.Int64
	var work errgroup.Group
	work.SetLimit(concurrentAppends)
	for n := range accounts {
		work.Go(func() error {
			a, events := o.accountEvents(n)
			accounts[n] = a
			stream := "account-" + a.ID
			proposed, err := codec.Encode(ctx, stream, uuid.New(), eventstore.Metadata{Actor: eventstore.SystemActor}, events)
			if err == nil {
				_, err = log.Append(ctx, stream, eventstore.NoStream, proposed)
			}
			o.Written(int(written.Add(1)))
			return err
		})
	}
	return accounts, work.Wait()
}

// accountEvents makes the events of the n-th account.
func (o AccountOptions) accountEvents(n int) (a Account, events []event.Event) {
	a = Account{ID: fmt.Sprint(o.IDPrefix, n), Anchor: o.Anchor(n)}
	events = append(events, event.AccountOpened{Account: a.ID, Plan: plan.Business, Quota: UnlimitedQuota, Anchor: a.Anchor})
	for range (n+1)*o.Keys/o.Accounts - n*o.Keys/o.Accounts {
		a.Key, a.Token = uuid.NewString(), token.DefaultPrefixes.New(token.Secret)
		hash := token.HashOf(a.Token)
		events = append(events, event.SecretKeyIssued{Key: a.Key, Hash: hash[:], Hint: token.DefaultPrefixes.Hint(a.Token)})
	}
	return a, events
}
