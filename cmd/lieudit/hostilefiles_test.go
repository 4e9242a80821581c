package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// csvForm is the form of a file for POST /search/csv, with one column of addresses that is named some times.
func csvForm(file, column string, times int) string {
	var b strings.Builder
	b.WriteString("--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.csv\"\r\n\r\n" + file + "\r\n")
	for range times {
		b.WriteString("--x\r\nContent-Disposition: form-data; name=\"columns\"\r\n\r\n" + column + "\r\n")
	}
	return b.String() + "--x--\r\n"
}

// sendFile sends the form of a file and returns the answer whole.
func (svc *testService) sendFile(t *testing.T, key, form string) (status int, answer string, err error) {
	t.Helper()
	return svc.do(t.Context(), request{
		target: "POST /search/csv", key: key, body: strings.NewReader(form), headers: []string{"Content-Type: multipart/form-data; boundary=x"},
	})
}

// startProcessWithAddresses starts a service with invented addresses in a process of its own, in which one worker answers files.
func startProcessWithAddresses(t *testing.T) (*process, *testService) {
	t.Helper()
	t.Setenv("GOMAXPROCS", "2")
	return startAttackedProcess(t, os.Args[0])
}

// TestFilesOfAnyShapeTakeLittleMemory sends files that are small and become large: by columns, by cells that rows lack, by one cell
// that is searched by. Another account is answered meanwhile.
func TestFilesOfAnyShapeTakeLittleMemory(t *testing.T) {
	p, svc := startProcessWithAddresses(t)
	key, other := svc.openAccount(t, "hostile", "shops"), svc.openAccount(t, "other", "shops")
	wide := func(columns, rows int) string {
		return "a" + strings.Repeat(",", columns-1) + "\n" + strings.Repeat("b\n", rows)
	}
	cell := "a,b\n" + strings.Repeat("rue ", 975<<10/4) + ",1\n"
	refused := int64(0)
	for _, c := range []struct {
		what, file string
		times      int // how often the column is named
		atOnce     int
		status     int
		want       string
	}{
		{"a million columns", wide(1_000_000, 400), 0, 1, 422, "the file has 1000000 columns"},
		{"300,000 columns", wide(300_000, 1_100), 0, 1, 422, "the file has 300000 columns"},
		{"twelve files in memory", wide(60_000, 1_000), 0, 12, 422, "the file has 60000 columns"},
		{"twelve files in memory of as many columns as are accepted", wide(1_024, 30_000), 0, 12, 200, "\nb\nb\nb\n"},
		{"rows of many cells", "a,b\n" + strings.Repeat(strings.Repeat(",", 1_000_000)+"\n", 3), 0, 8, 422, "row 1 has 1000001 cells"},
		{"a column that is named 200 times", cell, 200, 1, 200, "rue ,1,,,,,,,,,,,,,,,,,,error\n"},
		{"a long cell", cell, 1, 6, 200, "rue ,1,,,,,,,,,,,,,,,,,,error\n"},
		{"rows of long cells", "a,b\n" + strings.Repeat(cell[4:], 15), 1, 8, 200, "rue ,1,,,,,,,,,,,,,,,,,,error\n"},
	} {
		var clients sync.WaitGroup
		for range c.atOnce {
			clients.Go(func() {
				status, answer, err := svc.sendFile(t, key, csvForm(c.file, "a", c.times))
				if err != nil || status != c.status || !strings.Contains(answer, c.want) {
					t.Errorf("%s: %d %.300q, %v", c.what, status, answer, err)
				}
				if most := len(c.file) + 1024*strings.Count(c.file, "\n"); status == 200 && len(answer) > most {
					t.Errorf("%s: an answer has %d bytes, want at most %d", c.what, len(answer), most)
				}
			})
		}
		if status, answer, err := svc.sendFile(t, other, csvForm("a\nmende\n", "a", 1)); err != nil || status != 200 || strings.Contains(answer, "error") {
			t.Errorf("%s: another account is answered %d %q, %v", c.what, status, answer, err)
		}
		if clients.Wait(); c.status == 422 {
			refused += int64(c.atOnce)
		}
		t.Logf("%s: the peak of memory is %d MiB", c.what, p.peakMemoryMiB(t))
	}
	if peak := p.peakMemoryMiB(t); peak > 600*memoryFactor {
		t.Errorf("the process took %d MiB", peak)
	}
	// A refused file is one request. The other two are this one, and that of the referential.
	if used := svc.requestsUsed(t, key); used != 2+refused {
		t.Errorf("%d requests are counted, though no row was answered", used)
	}
}

// TestFilesAreAnsweredByAccountInTurn sends the file of one account while another has six files. By turns of accounts it is
// answered when the others have got as many rows together; by turns of files, when each of the six is at its end.
func TestFilesAreAnsweredByAccountInTurn(t *testing.T) {
	_, svc := startProcessWithAddresses(t)
	many, one := svc.openAccount(t, "many", "shops"), svc.openAccount(t, "one", "shops")
	const rows, files = 400, 6
	form := csvForm("a\n"+strings.Repeat(strings.Repeat("rue des lilas ", 14)+"\n", rows), "a", 1)
	var read atomic.Int64
	var begun, ended sync.WaitGroup
	begun.Add(files)
	for range files {
		ended.Go(func() {
			answer := svc.beginFile(t, many, form)
			defer answer.Body.Close()
			lines := bufio.NewScanner(answer.Body)
			lines.Scan()
			begun.Done()
			for lines.Scan() {
				read.Add(1)
			}
		})
	}
	begun.Wait()
	before := read.Load()
	status, answer, err := svc.sendFile(t, one, form)
	if got := strings.Count(answer, "\n"); err != nil || status != 200 || got != rows+1 {
		t.Fatalf("got %d with %d rows, %v", status, got, err)
	}
	meanwhile := read.Load() - before
	t.Logf("of the other account %d rows are answered before, %d meanwhile", before, meanwhile)
	if meanwhile > 3*rows {
		t.Errorf("%d rows of another account were answered in the time of %d", meanwhile, rows)
	}
	ended.Wait()
}

// beginFile sends the form of a file and returns the answer once it has begun.
func (svc *testService) beginFile(t *testing.T, key, form string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", svc.api+"/search/csv", strings.NewReader(form))
	if err != nil {
		panic(fmt.Sprint("a request that cannot be made: ", err))
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	answer, err := svc.client.Do(req)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("got %v, %v", answer, err)
		return &http.Response{Body: http.NoBody}
	}
	return answer
}
