package sqldb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
)

// closedConnector makes no connections while it is closed.
type closedConnector struct {
	driver.Connector
	isClosed *atomic.Bool
}

var errClosed = errors.New("no connection is made")

func (c closedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.isClosed.Load() {
		return nil, errClosed
	}
	return c.Connector.Connect(ctx)
}

func TestASimulationHasItsOwnClockAndConnections(t *testing.T) {
	t.Parallel()
	now, isClosed := time.Date(2031, 3, 30, 1, 59, 59, 1000, time.UTC), &atomic.Bool{}
	simulated := sqldb.Simulated{
		Clock:     func() time.Time { return now },
		Connector: func(c driver.Connector) driver.Connector { return closedConnector{c, isClosed} },
	}
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sqldb.Open(t.Context(), path, sqldb.Options{Simulated: simulated})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got int64
	if err := db.QueryRow(t.Context(), "select "+db.Now()).Scan(&got); err != nil || got != now.UnixMicro() {
		t.Errorf("the database's clock is %d, %v, want %d", got, err, now.UnixMicro())
	}
	isClosed.Store(true)
	if _, err := sqldb.Open(t.Context(), path, sqldb.Options{Simulated: simulated}); !errors.Is(err, errClosed) {
		t.Errorf("a closed connector: %v", err)
	}
}
