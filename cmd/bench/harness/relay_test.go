package harness

import (
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
)

// A process loses its Postgres: connections that were open end, and later ones too. The rest of the address stays as it was.
func TestARelayIsCut(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", AnyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { // an echo, until the listener is closed
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	r, err := StartRelay(t.Context(), "postgres://user:secret@"+server.Addr().String()+"/base?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	through, err := url.Parse(r.URL)
	if err != nil || through.Host == server.Addr().String() || strings.Replace(r.URL, through.Host, "", 1) != "postgres://user:secret@/base?sslmode=disable" {
		t.Fatalf("%s %v", r.URL, err)
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", through.Host)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	open := dial()
	defer open.Close()
	got := make([]byte, 4)
	if _, err := open.Write([]byte("echo")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(open, got); err != nil || string(got) != "echo" {
		t.Fatalf("through the relay: %q %v", got, err)
	}
	r.Cut()
	later := dial()
	defer later.Close()
	for name, conn := range map[string]net.Conn{"open": open, "later": later} {
		if n, err := conn.Read(got); err == nil || n != 0 {
			t.Errorf("a connection that is %s still gives %q", name, got[:n])
		}
	}
}
