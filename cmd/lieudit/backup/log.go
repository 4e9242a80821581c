package backup

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

// copiedLog is the copy of a log, open for this process alone.
type copiedLog struct {
	eventstore.Store
	close func() error
}

// Close closes everything that was opened for the log.
func (l copiedLog) Close() error { return l.close() }

// openLog opens a copied log of a name in a folder, as the service knows it: the log of a node is reached through a node, which keeps
// its UUID and its positions apart from those of the journal.
func openLog(ctx context.Context, name, folder string, now func() time.Time, logger *slog.Logger) (copiedLog, error) {
	j, err := journal.Open(folder, journal.Options{Clock: now, Logger: logger})
	if err != nil {
		return copiedLog{}, err
	}
	if name != NodeLog {
		return copiedLog{j, j.Close}, nil
	}
	served, err := serveNode(ctx, j, logger)
	if err != nil {
		return copiedLog{}, errors.Join(err, j.Close())
	}
	return served, nil
}

// serveNode serves a journal by a node on a socket that only this user reaches, and connects to it. The socket lies in a folder for
// temporary files: the path of a socket may have 100 letters only.
func serveNode(ctx context.Context, j *journal.Journal, logger *slog.Logger) (copiedLog, error) {
	dir, err := os.MkdirTemp("", "lieudit-")
	if err != nil {
		return copiedLog{}, err
	}
	socket := filepath.Join(dir, "node.sock")
	listener, err := node.Listen(ctx, "unix:"+socket)
	if err != nil {
		return copiedLog{}, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- node.New(j, node.Options{Logger: logger}).Serve(ctx, listener) }()
	stop := func() error {
		cancel()
		return errors.Join(<-ended, j.Close(), os.RemoveAll(dir))
	}
	client, err := esdb.Open(ctx, "esdb+unix://"+socket, logger)
	if err != nil {
		return copiedLog{}, errors.Join(err, stop())
	}
	return copiedLog{client, func() error { return errors.Join(client.Close(), stop()) }}, nil
}
