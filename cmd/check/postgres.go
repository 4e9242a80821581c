package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// postgres is a server for this run alone.
type postgres struct {
	url  string
	stop func()
}

// named is a server somebody else runs: tests make databases of their own in it.
const named = "LIEUDIT_TEST_POSTGRES"

func startPostgres(ctx context.Context) (*postgres, error) {
	if given := os.Getenv(named); given != "" {
		return &postgres{given, func() {}}, nil
	}
	if bin := postgresBin(); bin != "" {
		return startCluster(ctx, bin)
	}
	return startContainer(ctx)
}

// startCluster makes a throw-away cluster that listens on a socket in its own folder.
func startCluster(ctx context.Context, bin string) (*postgres, error) {
	dir, err := os.MkdirTemp("", "lieudit-check-")
	if err != nil {
		return nil, err
	}
	as, err := serverUser(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	data := filepath.Join(dir, "data")
	initdb := owned(command(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"), as, dir)
	initdb.Stdout = nil
	if err := initdb.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w", err), os.RemoveAll(dir))
	}
	server := owned(command(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=300", "-c", "log_min_messages=fatal"), as, dir)
	server.Stderr = nil
	if err := server.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	address := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}
	db := &postgres{address.String(), func() {
		server.Process.Signal(os.Interrupt) // fast shutdown
		server.Wait()                       // its exit says nothing about the checks
		os.RemoveAll(dir)
	}}
	if err := ready(ctx, filepath.Join(bin, "pg_isready"), dir); err != nil {
		db.stop()
		return nil, err
	}
	return db, nil
}

// serverUser is who the server runs as, which owns dir: Postgres refuses to run as root.
func serverUser(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, int(uid), int(gid))
}

func owned(cmd *exec.Cmd, as *syscall.Credential, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setpgid: true}
	return cmd
}

func ready(ctx context.Context, pgIsReady, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if exec.CommandContext(ctx, pgIsReady, "-q", "-h", socket).Run() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("postgres did not start: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// startContainer runs the Postgres of compose.yaml.
func startContainer(ctx context.Context) (*postgres, error) {
	if err := command(ctx, "docker", "compose", "up", "-d", "--wait", "postgres").Run(); err != nil {
		return nil, fmt.Errorf("docker compose: %w", err)
	}
	return &postgres{"postgres://lieudit:lieudit@127.0.0.1:5432/lieudit", func() {
		command(context.WithoutCancel(ctx), "docker", "compose", "stop", "postgres").Run() // best effort
	}}, nil
}
