package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/journal"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
)

// uploadedRows is how many rows the files of these tests have: their answers are larger than the buffers of any connection.
const uploadedRows = 150_000

// fileForm is a form with a file of rows, as POST /search/csv takes it.
func fileForm(rows int) string {
	const head = "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.csv\"\r\n\r\nadresse,note\r\n"
	return head + strings.Repeat("mende,"+strings.Repeat("n", 100)+"\r\n", rows) + "\r\n--x--\r\n"
}

// startUpload sends a file and returns the answer once it has begun. The rest of it is read by the caller.
func startUpload(ctx context.Context, t *testing.T, svc *testService, key string, rows int) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", svc.api+"/search/csv/", strings.NewReader(fileForm(rows)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	resp, err := svc.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got %s", resp.Status)
	}
	return resp
}

// startServiceWithKey starts a service with invented addresses and an account with a key.
func startServiceWithKey(t *testing.T) (svc *testService, key string) {
	t.Helper()
	svc = startService(t, func(c *service.Config) { c.Demo = true })
	svc.runCommand(t, "account open Acme --plan BUSINESS --id acme")
	return svc, strings.TrimSpace(svc.runCommand(t, "key issue acme --label backend"))
}

// requestsUsed is how many requests the account has used, this one included.
func (svc *testService) requestsUsed(t *testing.T, key string) int64 {
	t.Helper()
	var me body.Me
	if status := svc.getJSON(t, key, "/me", &me); status != http.StatusOK {
		t.Fatalf("GET /me: %d", status)
	}
	return *me.Quota.Used
}

func TestRowsThatAClientDoesNotWaitForAreRefunded(t *testing.T) {
	t.Parallel()
	svc, key := startServiceWithKey(t)
	ctx, leave := context.WithCancel(t.Context())
	resp := startUpload(ctx, t, svc, key, uploadedRows)
	read := bufio.NewScanner(resp.Body)
	for range 1000 {
		read.Scan()
	}
	if used := svc.requestsUsed(t, key); used < uploadedRows {
		t.Errorf("%d requests are counted while a file of %d rows is answered", used, uploadedRows)
	}
	leave()
	used := int64(0)
	waitUntil(t, "rows are refunded", func() bool {
		used = svc.requestsUsed(t, key)
		return used < uploadedRows
	})
	t.Logf("%d of %d rows were answered", used, uploadedRows)
	if used < 1000 {
		t.Errorf("%d requests stay counted, but the client read 1000 rows", used)
	}
	svc.mustUploadWhole(t, key) // its predecessor holds nothing any more
}

// mustUploadWhole sends a file that must be answered to its end.
func (svc *testService) mustUploadWhole(t *testing.T, key string) {
	t.Helper()
	before := svc.requestsUsed(t, key)
	text, err := io.ReadAll(startUpload(t.Context(), t, svc, key, 5000).Body)
	if rows := strings.Count(string(text), "\n") - 1; err != nil || rows != 5000 {
		t.Errorf("%d of 5000 rows, %v", rows, err)
	}
	if used := svc.requestsUsed(t, key) - before - 1; used != 5000 {
		t.Errorf("%d requests were counted for 5000 rows", used)
	}
}

func TestTheAnswerToAFileEndsWithItsKey(t *testing.T) {
	t.Parallel()
	svc, key := startServiceWithKey(t)
	other := strings.TrimSpace(svc.runCommand(t, "key issue acme --label other"))
	resp := startUpload(t.Context(), t, svc, key, uploadedRows)
	hint := key[len(key)-4:]
	svc.runCommand(t, "key revoke acme "+svc.keyWithHint(t, hint)+" --reason leak")
	waitUntil(t, "the key is refused", func() bool { return svc.statusOf(t, key, "GET /me", "") == http.StatusUnauthorized })
	text, err := io.ReadAll(resp.Body)
	rows := int64(strings.Count(string(text), "\n") - 1)
	if err == nil || rows >= uploadedRows {
		t.Errorf("%d rows were answered, %v", rows, err)
	}
	waitUntil(t, "the other rows are refunded", func() bool { return svc.requestsUsed(t, other) < uploadedRows })
}

// keyWithHint is the id of the account's key whose token ends with a text.
func (svc *testService) keyWithHint(t *testing.T, end string) string {
	t.Helper()
	for line := range strings.Lines(svc.runCommand(t, "key list acme --json")) {
		if strings.Contains(line, end+`"`) {
			var id string
			if _, after, found := strings.Cut(line, `"id":"`); found {
				id, _, _ = strings.Cut(after, `"`)
			}
			return id
		}
	}
	t.Fatalf("no key ends with %s", end)
	return ""
}

func TestFilesOfManyClientsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	svc, key := startServiceWithKey(t)
	done := make(chan error)
	for range 20 {
		go func() {
			status, text, err := svc.do(t.Context(), request{
				target: "POST /search/csv/", key: key, body: strings.NewReader(fileForm(2000)), headers: []string{"Content-Type: multipart/form-data; boundary=x"},
			})
			if rows := strings.Count(text, "\n") - 1; err == nil && (status != http.StatusOK || rows != 2000) {
				err = fmt.Errorf("got %d with %d rows", status, rows)
			}
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	waitUntil(t, "no file is kept", func() bool { return svc.metricValue(t, "lieudit_uploads") == "0" })
	if used := svc.requestsUsed(t, key); used != 20*2000+1 {
		t.Errorf("%d requests were counted, want %d", used, 20*2000+1)
	}
}

func TestRowsThatAShutdownCutsAreRefunded(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(c *service.Config) { c.Demo, c.FinishTimeout = true, 10*time.Millisecond })
	svc.runCommand(t, "account open Acme --plan BUSINESS --id acme")
	key := strings.TrimSpace(svc.runCommand(t, "key issue acme --label backend"))
	for range 3 {
		startUpload(t.Context(), t, svc, key, uploadedRows)
	}
	svc.stop()
	log, err := journal.Open(filepath.Join(svc.data, "log", "usage"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runs := readEventTypes(t, log, "incarnation-")
	for _, types := range runs {
		if slices.Contains(types, event.InstanceEnded{}.EventType()) {
			t.Errorf("requests were cut, and the log says that the instance ended in good order: %v", types)
		}
	}
	if len(runs) != 1 {
		t.Errorf("%d runs of an instance are on the log", len(runs))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	again := startService(t, func(c *service.Config) { c.Data, c.Demo = svc.data, true })
	if used := again.requestsUsed(t, key); used >= uploadedRows {
		t.Errorf("%d requests stay counted for files of %d rows that were cut", used, uploadedRows)
	}
}
