package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lieudit/eventstore/sqldb/sqldbtest"
)

// cluster is two instances in processes of their own, on one node and one Postgres.
type cluster struct {
	upstream
	flags     string // of both
	instances [2]*clusterInstance
}

// clusterInstance is one of them. Its process is replaced at each restart.
type clusterInstance struct {
	host, data string
	process    *process
}

// drainOfCluster is the default of --drain.
const drainOfCluster = 5 * time.Second

// startCluster starts a cluster that trusts the proxies of the tests, and waits until it is ready.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	postgres := sqldbtest.NewPostgresDatabase(t)
	n := startNode(t)
	c := &cluster{
		upstream: upstream{freePort(t, instanceHostA), freePort(t, instanceHostA)},
		flags:    fmt.Sprintf("--no-demo --drain %s --trusted-proxies %s --eventstore '%s' --postgres '%s'", drainOfCluster, proxySource, n.address(), postgres),
	}
	for i, host := range []string{instanceHostA, instanceHostB} {
		c.instances[i] = &clusterInstance{host: host, data: t.TempDir()}
		c.start(t, c.instances[i])
	}
	return c
}

// start starts the process of an instance and waits until it is ready.
func (c *cluster) start(t *testing.T, in *clusterInstance) {
	t.Helper()
	script := fmt.Sprintf(`exec "$0" "$@" --listen %s:%s --ops-listen %s:%s %s`, in.host, c.apiPort, in.host, c.opsPort, c.flags) // the last one of a flag counts
	in.process = launchProcess(t, in.data, "sh", "-c", script, os.Args[0])
	in.process.waitForOutput(t, "  API ")
	svc := &testService{ops: "http://" + in.process.ops, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	waitUntil(t, "the instance is ready", func() bool { return svc.isReady(t) })
}

// restart ends an instance as a service manager does and starts it again. It returns when the signal was sent.
func (c *cluster) restart(t *testing.T, in *clusterInstance) (signalled time.Time) {
	t.Helper()
	signalled = time.Now()
	if err := in.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := in.process.waitForExit(t); got.ExitStatus() != 0 {
		t.Errorf("the instance ended with %v, want exit code 0", got)
	}
	c.start(t, in)
	return signalled
}

// admin is a client of the first instance, which holds the operator's token.
func (c *cluster) admin(t *testing.T) *testService {
	t.Helper()
	waitUntil(t, "the operator's token", func() bool {
		_, err := os.Stat(c.instances[0].data + "/operator-token")
		return err == nil
	})
	return c.instances[0].process.testService(t)
}

// loadThroughProxy are clients that send GET /me through a proxy until they are stopped, each on connections that it keeps.
type loadThroughProxy struct {
	*frontend
	key     string
	running sync.WaitGroup
	stop    context.CancelFunc

	mu       sync.Mutex
	served   int64
	failures []proxyFailure
}

// proxyFailure is a request that was not answered with 200.
type proxyFailure struct {
	at        time.Time
	what      string
	isRefusal bool // the proxy itself says that it has no instance
}

func startLoadThroughProxy(t *testing.T, f *frontend, key string) *loadThroughProxy {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &loadThroughProxy{frontend: f, key: key, stop: stop}
	for range 3 {
		l.running.Go(func() {
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				l.sendOnce()
				<-pace.C
			}
		})
	}
	t.Cleanup(l.stopAndWait)
	return l
}

func (l *loadThroughProxy) stopAndWait() {
	l.stop()
	l.running.Wait()
}

// sendOnce sends a request to its end, and notes how that was.
func (l *loadThroughProxy) sendOnce() {
	at := time.Now()
	status, contentType, err := l.get("/services/v1/me", "Authorization: Bearer "+l.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && status == http.StatusOK {
		l.served++
		return
	}
	isRefusal := status == http.StatusServiceUnavailable && contentType != "application/json"
	l.failures = append(l.failures, proxyFailure{at, fmt.Sprintf("%d %s %v", status, contentType, err), isRefusal})
}

// get sends a request through the proxy and reads the answer.
func (f *frontend) get(path string, headers ...string) (status int, contentType string, err error) {
	req, err := http.NewRequest(http.MethodGet, f.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Content-Type"), err
}

// TestARollingRestartBehindAProxyFailsNoRequest restarts both instances under load that comes through each proxy. Next to each
// stands the same proxy without retries: then no request either that reaches an instance which drains. What such a proxy does not
// bring to any instance, because a busy one has not answered its check in time, is not counted.
func TestARollingRestartBehindAProxyFailsNoRequest(t *testing.T) {
	t.Parallel()
	for _, p := range proxyPrograms() {
		p.find(t)
	}
	c := startCluster(t)
	var with, without []*loadThroughProxy
	for _, p := range proxyPrograms() {
		for _, withRetries := range []bool{true, false} {
			key := c.admin(t).openAccount(t, fmt.Sprintf("%s-%t", p.name, withRetries), "r")
			if withRetries {
				with = append(with, startLoadThroughProxy(t, p.startFrontend(t, c.upstream), key))
			} else {
				without = append(without, startLoadThroughProxy(t, p.startFrontend(t, c.upstream, p.withoutRetries...), key))
			}
		}
	}
	var signals []time.Time
	for _, in := range c.instances {
		signals = append(signals, c.restart(t, in))
	}
	for _, l := range append(with, without...) {
		l.stopAndWait()
	}
	svc := c.admin(t)
	for i, l := range with {
		l.checkServed(t, svc, func(proxyFailure) bool { return true })
		without[i].checkServed(t, svc, func(f proxyFailure) bool { return !f.isRefusal && isDuringDrain(f.at, signals) })
	}
}

// What nginx sends on an idle connection that an instance closes at its end is lost, and a POST is not sent again.
func TestNginxClosesIdleConnectionsWhileAnInstanceDrains(t *testing.T) {
	t.Parallel()
	config := string(mustReadFile(t, "guide/proxies/nginx.conf"))
	found := regexp.MustCompile(`(?m)^ *keepalive_timeout (\w+);`).FindStringSubmatch(config)
	if found == nil {
		t.Fatal("nginx.conf sets no keepalive_timeout")
	}
	if timeout, err := time.ParseDuration(found[1]); err != nil || timeout >= drainOfCluster {
		t.Errorf("keepalive_timeout is %s, %v; want less than the default of --drain, %s", found[1], err, drainOfCluster)
	}
}

// isDuringDrain reports whether an instance drained at an instant, and for a while after that.
func isDuringDrain(at time.Time, signals []time.Time) bool {
	for _, signalled := range signals {
		if at.After(signalled) && at.Before(signalled.Add(drainOfCluster*9/10)) {
			return true
		}
	}
	return false
}

// checkServed checks that no request failed which matters, and that exactly the others were counted.
func (l *loadThroughProxy) checkServed(t *testing.T, svc *testService, matters func(proxyFailure) bool) {
	t.Helper()
	for _, f := range l.failures {
		if matters(f) {
			t.Errorf("%s: a request failed: %s", l.name, f.what)
		}
	}
	if l.served == 0 {
		t.Errorf("%s: nothing was served", l.name)
	}
	if used := svc.requestsUsed(t, l.key) - 2; used != l.served { // the referential and this one
		t.Errorf("%s: %d requests were counted, want %d", l.name, used, l.served)
	}
	t.Logf("%s: %d requests served, %d failed", l.name, l.served, len(l.failures))
}

// TestProxiesPassOnWhatTheServiceNeeds: each proxy stands in front of the service.
func TestProxiesPassOnWhatTheServiceNeeds(t *testing.T) {
	t.Parallel()
	for _, p := range proxyPrograms() {
		p.find(t)
	}
	c := startCluster(t)
	for _, p := range proxyPrograms() {
		svc := c.admin(t)
		secret := svc.openAccount(t, p.name, "shops")
		publishable := strings.TrimSpace(svc.runCommand(t, "key issue "+p.name+" --kind publishable --label page --origin https://www.exemple.fr"))
		f := p.startFrontend(t, c.upstream)
		t.Run(p.name+"/a_body_of_64_MiB", func(t *testing.T) { f.checkLargeBody(t, secret) })
		t.Run(p.name+"/visitors_have_limits_of_their_own", func(t *testing.T) { f.checkThrottle(t, publishable) })
	}
}

// checkLargeBody sends the largest body there is, and one whose key is refused before it is read.
func (f *frontend) checkLargeBody(t *testing.T, key string) {
	svc := &testService{api: f.url + "/services/v1", client: f.client}
	text := bulkySync(64<<20, `,"dry_run":true`)
	text += strings.Repeat(" ", 64<<20-len(text))
	if status, answer := svc.upload(t, key, shopSyncPath, strings.NewReader(text), int64(len(text))); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, answer)
	}
	if status, answer := svc.upload(t, key, shopSyncPath, strings.NewReader(text+" "), int64(len(text))+1); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a byte more: got %d %s, want 413", status, answer)
	}
}

// checkThrottle is many visitors of one page, of whom each makes a few requests, and one who makes many and sends another invented
// address with each.
func (f *frontend) checkThrottle(t *testing.T, key string) {
	headers := []string{"Authorization: Bearer " + key, "Origin: https://www.exemple.fr"}
	const search = "/services/v1/locations/search?q=mende"
	var visitors sync.WaitGroup
	for n := range 80 {
		visitors.Go(func() {
			visitor := &frontend{url: f.url, client: f.clientFrom(fmt.Sprintf("127.0.1.%d", n+1))}
			defer visitor.client.CloseIdleConnections()
			for range 6 {
				if status, _, err := visitor.get(search, headers...); status != http.StatusOK {
					t.Errorf("a visitor got %d, %v; want 200", status, err)
				}
			}
		})
	}
	visitors.Wait()
	var refused, sent atomic.Int64
	var abuser sync.WaitGroup
	client := &frontend{url: f.url, client: f.clientFrom("127.0.2.1")}
	for range 16 {
		abuser.Go(func() {
			for n := sent.Add(1); n <= 3000 && refused.Load() == 0; n = sent.Add(1) {
				spoofed := fmt.Sprintf("198.51.%d.%d", n>>8, n&255)
				status, _, err := client.get(search, append(headers, "X-Forwarded-For: "+spoofed, "Forwarded: for="+spoofed, "X-Real-IP: "+spoofed)...)
				if status == http.StatusTooManyRequests {
					refused.Add(1)
				} else if status != http.StatusOK {
					t.Errorf("got %d, %v; want 200 or 429", status, err)
				}
			}
		})
	}
	abuser.Wait()
	if refused.Load() == 0 {
		t.Errorf("%d requests of one visitor with invented addresses were all served", sent.Load())
	}
}

// clientFrom returns a client of the proxy whose connections come from an address.
func (f *frontend) clientFrom(source string) *http.Client {
	return newTrustingClient(f.client.Transport.(*http.Transport).TLSClientConfig.RootCAs, source)
}

// TestProxiesPassOnRequestsAsTheyWereSent has a server behind each proxy that keeps what it was sent.
func TestProxiesPassOnRequestsAsTheyWereSent(t *testing.T) {
	t.Parallel()
	for _, p := range proxyPrograms() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.find(t)
			behind := startRecorder(t)
			f := p.startFrontend(t, behind.upstream)
			for _, path := range []string{"/services/v1/a%2Fb%3Ac/d:e", "/services/v1//x//y/", "/services/v1/%C3%A9?q=a%20b+c%2Fd&q=%22", "/services/v1/./../z"} {
				got := behind.requestAsSent(t, f, path)
				if got.RequestURI != path {
					t.Errorf("got the path %s, want %s", got.RequestURI, path)
				}
				if origin := got.Header.Get("Origin"); origin != "https://www.exemple.fr" {
					t.Errorf("got Origin %q", origin)
				}
				if got.Header.Get("Forwarded") != "" {
					t.Errorf("got Forwarded %q of the client, want none", got.Header.Get("Forwarded"))
				}
			}
			behind.checkStream(t, f)
		})
	}
}

// recorder is two servers on the hosts of the instances. It keeps the last request, and answers /stream in two parts.
type recorder struct {
	upstream
	last atomic.Pointer[http.Request]
	goOn chan struct{} // lets the second part of a stream be sent
}

// startRecorder starts both servers, which are ready always, and closes them with the test.
func startRecorder(t *testing.T) *recorder {
	t.Helper()
	port := freePort(t, instanceHostA)
	r := &recorder{upstream: upstream{port, port}, goOn: make(chan struct{})}
	for _, host := range []string{instanceHostA, instanceHostB} {
		ln, err := net.Listen("tcp", host+":"+port)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: r}
		go s.Serve(ln)
		t.Cleanup(func() { s.Close() })
	}
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != "/readyz" {
		r.last.Store(req)
	}
	if req.URL.Path != "/stream" {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: 1\n\n")
	http.NewResponseController(w).Flush()
	<-r.goOn
	fmt.Fprint(w, "data: 2\n\n")
}

// requestAsSent sends a path as it stands, without a client library that cleans it, and returns what arrived.
func (r *recorder) requestAsSent(t *testing.T, f *frontend, path string) *http.Request {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(f.url, "https://"), f.client.Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nOrigin: https://www.exemple.fr\r\nForwarded: for=198.51.100.1\r\nConnection: close\r\n\r\n", path, strings.TrimPrefix(f.url, "https://"))
	answer, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Errorf("%s: got %q, %v; want 200", path, answer, err)
	}
	return r.last.Load()
}

// checkStream checks that the first part of a stream arrives before the second is sent.
func (r *recorder) checkStream(t *testing.T, f *frontend) {
	t.Helper()
	resp, err := f.client.Get(f.url + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); line != "data: 1\n" {
		t.Errorf("got %q, %v", line, err)
	}
	close(r.goOn)
	if rest, err := io.ReadAll(lines); string(rest) != "\ndata: 2\n\n" {
		t.Errorf("got %q, %v", rest, err)
	}
}
