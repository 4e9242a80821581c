package service

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func TestASupervisorIsToldWhenTheInstanceIsReadyAndWhenItStops(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	supervisor, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer supervisor.Close()
	s := &service{Config: Config{NotifySocket: path, Log: slog.New(slog.DiscardHandler)}}
	var asked atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.notifySupervisor(ctx, func(context.Context) bool { return asked.Add(1) > 2 }) }()
	if got, want := receiveState(t, supervisor), "READY=1"; got != want || asked.Load() != 3 {
		t.Errorf("got %q after %d questions, want %q after 3", got, asked.Load(), want)
	}
	stop()
	if got, want := receiveState(t, supervisor), "STOPPING=1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestASupervisorThatIsNotThereEndsNothing(t *testing.T) {
	t.Parallel()
	s := &service{Config: Config{NotifySocket: filepath.Join(t.TempDir(), "absent"), Log: slog.New(slog.DiscardHandler)}}
	if err := s.notifySupervisor(t.Context(), func(context.Context) bool { return true }); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func receiveState(t *testing.T, supervisor *net.UnixConn) string {
	t.Helper()
	if err := supervisor.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	datagram := make([]byte, 100)
	n, err := supervisor.Read(datagram)
	if err != nil {
		t.Fatal(err)
	}
	return string(datagram[:n])
}
