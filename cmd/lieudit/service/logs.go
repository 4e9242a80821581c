package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
)

// logs are the two logs of the service: core holds accounts, keys and places, usage the ticks. They are apart
// so that millions of ticks never slow the replay of keys; on a server they may be one.
type logs struct{ core, usage eventstore.Store }

func openLogs(ctx context.Context, c Config) (logs, error) {
	if c.EventStore != "" {
		server, err := esdb.Open(ctx, c.EventStore, c.Log)
		if err != nil {
			return logs{}, fmt.Errorf("event store: %w", err)
		}
		return logs{server, server}, nil
	}
	core, err := openJournal(c, "core")
	if err != nil {
		return logs{}, err
	}
	usage, err := openJournal(c, "usage")
	if err != nil {
		core.Close() // nothing was written to it
		return logs{}, err
	}
	return logs{core, usage}, nil
}

func openJournal(c Config, name string) (*journal.Journal, error) {
	return journal.Open(filepath.Join(c.Data, "log", name), journal.Options{Clock: c.Now, Logger: c.Log})
}

func (l logs) close() error {
	if l.usage == l.core {
		return l.core.Close()
	}
	return errors.Join(l.core.Close(), l.usage.Close())
}
