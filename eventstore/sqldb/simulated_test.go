package sqldb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// hookedConnector makes connections that call a hook after each query.
type hookedConnector struct {
	driver.Connector
	afterQuery func(text string)
}

type hookedConn struct {
	sqldb.SQLiteConn
	afterQuery func(text string)
}

func (c hookedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return hookedConn{conn.(sqldb.SQLiteConn), c.afterQuery}, nil
}

func (c hookedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.SQLiteConn.QueryContext(ctx, text, args)
	c.afterQuery(text)
	return rows, err
}

// A promotion removes the files of generations that the registry does not list. Another instance may enter one, and make its file, after
// the registry was read for that.
func TestThePromotionLeavesTheFileOfAGenerationThatIsBeingMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, madeMeanwhile, lost := openRegistry(t, dir), filepath.Join(dir, "stock-v1-g9.db"), filepath.Join(dir, "stock-v1-g8.db")
	s.Simulated = sqldb.Simulated{Clock: time.Now, Connector: func(c driver.Connector) driver.Connector {
		return hookedConnector{c, func(text string) {
			if strings.HasSuffix(text, "where state <> 'dropped'") {
				if err := os.WriteFile(madeMeanwhile, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}}
	}}
	c, err := s.BuildGeneration(t.Context(), model(1), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(madeMeanwhile), os.WriteFile(lost, nil, 0o600)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := s.PromoteGeneration(t.Context(), model(1), c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(madeMeanwhile); err != nil {
		t.Errorf("the file of the generation that is being made: %v", err)
	}
	if _, err := os.Stat(lost); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that nobody lists is still there: %v", err)
	}
}
