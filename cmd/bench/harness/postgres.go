package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"time"
)

// Postgres is a disposable Postgres server that listens on a socket in a folder of its own, and on no port. Like every process of the harness
// it ends with the one that started it. Its methods must not be called concurrently.
type Postgres struct {
	URL string // of the database postgres

	binDir, dir string
	credential  *credential // of the user it runs as; nil: that of this process
	server      *exec.Cmd
	stdin       io.Closer
}

// FindPostgres returns the folder of the programs of the newest Postgres server on this machine, or "" if there is none. Debian keeps every
// version in a folder of its own and leaves the server out of the PATH, so those folders are searched first.
func FindPostgres() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	// Shorter names sort first, so that version 9 comes before version 16.
	sort.Slice(found, func(i, j int) bool {
		return len(found[i]) < len(found[j]) || len(found[i]) == len(found[j]) && found[i] < found[j]
	})
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// StartPostgres creates a cluster with the programs in bin, a folder that FindPostgres returned, and starts its server. The cluster has no
// passwords: only users who may enter its folder can connect. Call Remove in the end; after an error there is nothing to remove.
func StartPostgres(ctx context.Context, bin string) (_ *Postgres, err error) {
	c := &Postgres{binDir: bin}
	if c.dir, err = os.MkdirTemp("", "lieudit-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Remove())
		}
	}()
	if c.credential, err = serverUser(c.dir); err != nil {
		return nil, err
	}
	initdb := c.command(ctx, "initdb", "-D", c.dataDir(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if output, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, output)
	}
	address := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: url.Values{"host": {c.dir}}.Encode()}
	c.URL = address.String()
	return c, c.Start(ctx)
}

func (c *Postgres) dataDir() string { return filepath.Join(c.dir, "data") }

// command returns one of Postgres's programs with arguments, in a process group of its own, so that a Ctrl-C does not reach
// it.
func (c *Postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.binDir, name), args...)
	cmd.Dir = c.dir
	startApart(cmd, c.credential)
	return cmd
}

// serverScript starts a server and sends it a signal when the script's standard input ends. The caller passes that input as
// descriptor 3, because a shell gives its background commands an empty standard input. If the server ends first, the script kills
// the command that waits for the input.
func serverScript(signal string) string {
	return `"$0" "$@" </dev/null & server=$!; (cat >/dev/null; kill -` + signal + ` $server) <&3 & wait $server; kill $!`
}

// Start starts the server and returns once it answers. It is also the way to continue after Stop. SIGINT makes Postgres end its
// connections and stop in good order.
func (c *Postgres) Start(ctx context.Context) error {
	// Without fsync it is faster; its rows need not survive a crash of the machine. Several instances share the connections.
	settings := []string{"-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=300", "-c", "log_min_messages=fatal"}
	args := append([]string{"-c", "exec 3<&0; " + serverScript("INT"), filepath.Join(c.binDir, "postgres"), "-D", c.dataDir(), "-k", c.dir}, settings...)
	c.server = exec.Command("/bin/sh", args...)
	c.server.Dir = c.dir
	startApart(c.server, c.credential)
	var err error
	if c.stdin, err = c.server.StdinPipe(); err != nil {
		return err
	}
	if err := c.server.Start(); err != nil {
		return err
	}
	return c.waitAccepting(ctx)
}

// waitAccepting waits until the server accepts connections, for processTimeout at most.
func (c *Postgres) waitAccepting(ctx context.Context) error {
	return Retry(ctx, processTimeout, 50*time.Millisecond, func() error {
		if err := exec.CommandContext(ctx, filepath.Join(c.binDir, "pg_isready"), "-q", "-h", c.dir).Run(); err != nil {
			return fmt.Errorf("postgres did not start: %w", err)
		}
		return nil
	})
}

// Stop ends the server and its connections at once and in good order, and returns when it has ended. Start starts it again. If no server runs,
// Stop does nothing. It never returns while the server is suspended.
func (c *Postgres) Stop() {
	if c.server == nil {
		return
	}
	c.stdin.Close()
	c.server.Wait() // its exit code means nothing
	c.server = nil
}

// Remove ends the server, suspended or not, and removes the cluster.
func (c *Postgres) Remove() error {
	if c.server != nil {
		c.Resume() // a suspended server does not end; an error only means that no server runs
	}
	c.Stop()
	return os.RemoveAll(c.dir)
}
