package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
)

func TestAPreflightOfTheWholeServerIsAnsweredLikeAnyOther(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	address, _, _ := strings.Cut(strings.TrimPrefix(svc.api, "http://"), "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != http.StatusNoContent || got != "*" {
		t.Errorf("got %d, Access-Control-Allow-Origin %q; want 204, *", resp.StatusCode, got)
	}
}
