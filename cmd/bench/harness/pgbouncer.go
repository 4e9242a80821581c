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
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// PgBouncer is a disposable pooler in front of a Postgres. It listens on a socket in a folder of its own, and on no port. Its users are session
// and transaction, each named after its pool mode, without a password; in Postgres they have only the rights of a database's owner. Like every
// process of the harness it ends with the one that started it.
type PgBouncer struct {
	URL string // of the database postgres, without a user

	dir     string
	process *exec.Cmd
	stdin   io.Closer
}

// pooledUsers are the users that StartPgBouncer creates in Postgres, each named after its pool mode.
var pooledUsers = []string{"session", "transaction"}

// FindPgBouncer returns the path of the program, or "" if this machine does not have it. Debian has it in /usr/sbin, which is not in every
// PATH.
func FindPgBouncer() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// StartPgBouncer starts the program in front of the Postgres at an address, whose user may create users, and returns once it accepts a client.
// The users stay in that Postgres. Call Remove in the end; after an error there is nothing to remove.
func StartPgBouncer(ctx context.Context, program, postgres string) (_ *PgBouncer, err error) {
	server, err := pgx.ParseConfig(postgres)
	if err != nil {
		return nil, err
	}
	if err := createPooledUsers(ctx, postgres); err != nil {
		return nil, fmt.Errorf("users for pgbouncer: %w", err)
	}
	b := &PgBouncer{}
	if b.dir, err = os.MkdirTemp("", "lieudit-pgbouncer-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Remove())
		}
	}()
	address := url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: url.Values{"host": {b.dir}, "port": {"6432"}}.Encode()}
	b.URL = address.String()
	if err := b.writeFiles(server); err != nil {
		return nil, err
	}
	return b, b.start(ctx, program)
}

// createPooledUsers creates the users in Postgres if they are missing. Their passwords are their names, which PgBouncer sends to a server that
// asks for passwords.
func createPooledUsers(ctx context.Context, postgres string) error {
	db, err := pgx.Connect(ctx, postgres)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	for _, user := range pooledUsers {
		create := "create role " + pgx.Identifier{user}.Sanitize() + " login password '" + user + "'"
		if _, err := db.Exec(ctx, "do $$ begin "+create+"; exception when duplicate_object then null; end $$"); err != nil {
			return err
		}
	}
	return nil
}

// pgBouncerConfig accepts many clients, because many tests run at once, and soon forgets dropped databases. Settings that a client requests at
// its start are refused, which is the default.
const pgBouncerConfig = `[databases]
* = host=%[2]s port=%[3]d

[users]
session = pool_mode=session
transaction = pool_mode=transaction

[pgbouncer]
unix_socket_dir = %[1]s
listen_port = 6432
auth_type = trust
auth_file = %[1]s/users.txt
max_client_conn = 2000
default_pool_size = 100
server_idle_timeout = 5
autodb_idle_timeout = 10
log_connections = 0
log_disconnections = 0
logfile = %[1]s/log.txt
`

// writeFiles writes the configuration and the list of users.
func (b *PgBouncer) writeFiles(server *pgx.ConnConfig) error {
	config := fmt.Sprintf(pgBouncerConfig, b.dir, server.Host, server.Port)
	users := ""
	for _, user := range pooledUsers {
		users += fmt.Sprintf("%q %q\n", user, user)
	}
	return errors.Join(os.WriteFile(b.path("pgbouncer.ini"), []byte(config), 0o644), os.WriteFile(b.path("users.txt"), []byte(users), 0o644))
}

func (b *PgBouncer) path(name string) string { return filepath.Join(b.dir, name) }

// start starts the program as the user of Postgres: both refuse to run as root. SIGTERM ends it without waiting for its clients.
func (b *PgBouncer) start(ctx context.Context, program string) error {
	credential, err := serverUser(b.dir)
	if err != nil {
		return err
	}
	b.process = exec.Command("/bin/sh", "-c", "exec 3<&0; "+serverScript("TERM"), program, "-q", b.path("pgbouncer.ini"))
	b.process.Dir = b.dir
	startApart(b.process, credential)
	if b.stdin, err = b.process.StdinPipe(); err != nil {
		return err
	}
	if err := b.process.Start(); err != nil {
		b.process = nil
		return err
	}
	return b.waitAccepting(ctx)
}

// waitAccepting waits until a client is accepted, for processTimeout at most.
func (b *PgBouncer) waitAccepting(ctx context.Context) error {
	return Retry(ctx, processTimeout, 50*time.Millisecond, func() error {
		db, err := pgx.Connect(ctx, strings.Replace(b.URL, "postgres://", "postgres://session@", 1))
		if err != nil {
			log, _ := os.ReadFile(b.path("log.txt"))
			return fmt.Errorf("pgbouncer did not start: %w: %s", err, log)
		}
		return db.Close(ctx)
	})
}

// Remove ends the program and removes its folder.
func (b *PgBouncer) Remove() error {
	if b.process != nil {
		b.stdin.Close()
		b.process.Wait() // its exit code means nothing
	}
	return os.RemoveAll(b.dir)
}
