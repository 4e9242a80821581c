package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
)

// Loopback addresses of the tests of proxies. No connection comes from a port of these, so that a port of them which was free
// stays free.
const (
	instanceHostA = "127.0.0.2"
	instanceHostB = "127.0.0.3"
	proxyHost     = "127.0.0.4"
	proxySource   = "127.0.0.1" // where the system lets connections of a proxy come from
)

// proxyProgram is one of the programs that the operators' guide has a configuration for.
type proxyProgram struct {
	name, executable, config string                       // the configuration is a file of the guide
	start                    func(p *proxyFiles) []string // the command
	adapt                    []string                     // pairs for strings.NewReplacer, which may name TMP, CERT, KEY, PEM and LISTEN
	withoutRetries           []string                     // pairs that turn off that requests are sent again
}

// proxyPrograms are all of them. Only what a machine has of its own is replaced in a configuration.
func proxyPrograms() []proxyProgram {
	return []proxyProgram{
		{
			name: "nginx", executable: "nginx", config: "nginx.conf",
			start: func(p *proxyFiles) []string {
				return []string{"-p", p.folder, "-e", "stderr", "-c", p.config, "-g", "daemon off; pid " + p.folder + "/pid;"}
			},
			adapt: []string{
				"http {\n", "http {\n    client_body_temp_path TMP/body; proxy_temp_path TMP/proxy; fastcgi_temp_path TMP/f; uwsgi_temp_path TMP/u; scgi_temp_path TMP/s;\n",
				"worker_processes auto;", "worker_processes 2;", "listen 443", "listen LISTEN",
				"/etc/ssl/lieudit/certificate.pem", "CERT", "/etc/ssl/lieudit/key.pem", "KEY",
			},
			withoutRetries: []string{"proxy_next_upstream error timeout;", "proxy_next_upstream off;"},
		},
		{
			name: "haproxy", executable: "haproxy", config: "haproxy.cfg",
			start:          func(p *proxyFiles) []string { return []string{"-db", "-f", p.config} },
			adapt:          []string{"bind :443", "bind LISTEN", "/etc/haproxy/lieudit.pem", "PEM"},
			withoutRetries: []string{"retries 3", "retries 0", "option redispatch 1", "no option redispatch", "retry-on conn-failure empty-response", "retry-on none"},
		},
		{
			name: "caddy", executable: "caddy", config: "Caddyfile",
			start: func(p *proxyFiles) []string { return []string{"run", "--adapter", "caddyfile", "--config", p.config} },
			adapt: []string{
				"auto_https disable_redirects", "auto_https off\n\tadmin off", "api.exemple.fr {", "https://LISTEN {",
				"/etc/caddy/certificate.pem", "CERT", "/etc/caddy/key.pem", "KEY",
			},
			withoutRetries: []string{"lb_try_duration 5s", "lb_try_duration 0s", "== 503", "== 999", "!= 503", "!= 999"},
		},
	}
}

// find returns the path of the program. The tests that need it belong to the whole level of the check.
func (p proxyProgram) find(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath(p.executable)
	missing := ""
	if err != nil || runtime.GOOS != "linux" { // others have one loopback address
		missing = "no " + p.executable + " on a Linux: apt-get install nginx-light haproxy caddy"
	}
	leveltest.Need(t, leveltest.Whole, missing)
	return path
}

// proxyFiles are the files that one running proxy has of its own.
type proxyFiles struct{ folder, config string }

// frontend is a running proxy.
type frontend struct {
	proxyProgram
	url    string // base URL
	client *http.Client
}

// upstream is where the instances behind a proxy listen: on the same two ports of both hosts.
type upstream struct{ apiPort, opsPort string }

// startFrontend starts a proxy on its configuration of the guide, in front of instances, and ends it with the test. Of the
// configuration only addresses and files are changed, and what change has.
func (p proxyProgram) startFrontend(t *testing.T, behind upstream, change ...string) *frontend {
	t.Helper()
	executable := p.find(t)
	files := &proxyFiles{folder: t.TempDir()}
	files.config = filepath.Join(files.folder, p.config)
	certificate, pool := writeCertificate(t, files.folder)
	listen := proxyHost + ":" + freePort(t, proxyHost)
	pairs := append([]string{
		"10.0.0.11:8080", instanceHostA + ":" + behind.apiPort, "10.0.0.12:8080", instanceHostB + ":" + behind.apiPort,
		"port 8082", "port " + behind.opsPort, "health_port 8082", "health_port " + behind.opsPort,
	}, append(change, p.adapt...)...)
	text := string(mustReadFile(t, filepath.Join("guide", "proxies", p.config)))
	for i := 0; i < len(pairs); i += 2 {
		if strings.HasPrefix(pairs[i], "port ") || strings.HasPrefix(pairs[i], "health_port") {
			continue // nginx has neither
		}
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q", p.config, pairs[i])
		}
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	text = strings.NewReplacer("TMP", files.folder, "LISTEN", listen, "CERT", certificate+"/cert.pem", "KEY", certificate+"/key.pem", "PEM", certificate+"/both.pem").Replace(text)
	mustWriteFile(t, files.config, text)
	startProgram(t, files.folder, executable, p.start(files)...)
	f := &frontend{proxyProgram: p, url: "https://" + listen, client: newTrustingClient(pool, "")}
	waitUntil(t, p.name+" passes requests on", func() bool {
		resp, err := f.client.Get(f.url + "/services/v1/version")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return f
}

// startProgram starts a program with a home of its own, and kills it with the test.
func startProgram(t *testing.T, home, executable string, args ...string) {
	t.Helper()
	cmd := exec.Command(executable, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) // nginx ends its workers only when it is asked
		ended := time.AfterFunc(deadlinetest.Scale(10*time.Second), func() { cmd.Process.Kill() })
		cmd.Wait()
		ended.Stop()
		if t.Failed() {
			t.Logf("%s:\n%s", executable, output.String())
		}
	})
}

// freePort returns a port of a host that is free.
func freePort(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// newTrustingClient returns a client that trusts a certificate, and whose connections come from an address, if one is given.
func newTrustingClient(pool *x509.CertPool, source string) *http.Client {
	dialer := net.Dialer{}
	if source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
	}
	return &http.Client{Timeout: deadlinetest.Scale(deadlinetest.DefaultLimit), Transport: transport}
}

// writeCertificate writes a certificate for the host of the proxies, its key, and both in one file, and returns their folder.
func writeCertificate(t *testing.T, folder string) (string, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "proxy"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(proxyHost)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	mustWriteFile(t, filepath.Join(folder, "cert.pem"), certPEM)
	mustWriteFile(t, filepath.Join(folder, "key.pem"), keyPEM)
	mustWriteFile(t, filepath.Join(folder, "both.pem"), certPEM+keyPEM)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(certPEM))
	return folder, pool
}
