// Package browsertest opens pages in a real, headless Chromium and uses them as a person does, for tests of web pages. The
// program that ships does not import it.
//
// A test starts a Browser, opens a Page in it, acts on what the page shows by role and accessible name, and demands of each
// state with CheckPage what holds for every page: no console error, no violation of the Content Security Policy, no request
// to another origin, no failed load, no horizontal scroll and no accessibility violation.
//
//	Browser.NewPage(t, Options) ──> Page: Open, Click, Fill, Press, WaitFor ──> CheckPage, AccessibilityTree, Screenshot
//	      │                                 │  events: complaints, requests
//	      └── connection: calls and events of the DevTools protocol, over two pipes
//
//	page := browsers.Start(t).NewPage(t, browsertest.Options{Width: 360, Language: "fr"})
//	page.Open(url)
//	page.Fill("Nom", "vitrine")
//	page.Click("button", "Créer")
//	page.WaitFor("ld_sk_")
//	browsertest.CheckPage(t, page)
//
// Pages of one NewContext share cookies, as tabs of one browser do; those of two contexts share nothing. A Page fails its
// test with the page's address and the path of a screenshot; Page.With hands it to a subtest. A complaint that a test never
// asks for fails the test at its end. Start the server first and make the page after it, so that the page closes before the
// server ends; otherwise a stream of events that is cut is a complaint.
//
// Everything works with JavaScript off as well, Eval and CheckPage included, for the driver's own scripts are not the page's.
// Only promises, timers and animation frames of an Eval never come then.
//
// The driver knows the main frame only. It does not look into frames of other origins.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
)

// Browser is a running Chromium. It is safe for concurrent use.
type Browser struct {
	*connection
	command   *exec.Cmd
	folder    string // of its profile and its standard error
	pipes     [2]*os.File
	userAgent string
}

// Start starts a Chromium that ends with the test. flags are more flags of its command line. It needs the usual level of
// cmd/check, and skips the test on a machine without Chromium.
func Start(t testing.TB, flags ...string) *Browser {
	t.Helper()
	b, err := launch(findChromium(t), flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.closeOrReport(t) })
	return b
}

// Shared is one Chromium for all tests that run at the same time. It starts for the first of them and ends after the last.
// The zero value is ready; a test package keeps one in a variable.
type Shared struct {
	mu      sync.Mutex
	browser *Browser
	users   int
}

// Start returns the running Chromium, and starts it if there is none.
func (s *Shared) Start(t testing.TB) *Browser {
	t.Helper()
	path := findChromium(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		b, err := launch(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.browser = b
	}
	s.users++
	t.Cleanup(func() { s.release(t) })
	return s.browser
}

func (s *Shared) release(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.browser.closeOrReport(t)
	}
}

// findChromium is the path of the browser on this machine.
func findChromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			leveltest.Need(t, leveltest.Usual, "")
			return path
		}
	}
	leveltest.Need(t, leveltest.Usual, "no browser: apt-get install chromium")
	return ""
}

// launchFlags keep Chromium to the pages of the test: no network of its own, no profile of the user, no questions. It accepts
// any certificate, as those of httptest.
var launchFlags = []string{
	"--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
	"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
	"--disable-extensions", "--disable-breakpad", "--disable-default-apps", "--disable-search-engine-choice-screen",
	"--ignore-certificate-errors", "--disable-features=Translate,OptimizationHints,MediaRouter", "--password-store=basic", "--mute-audio",
	"--force-color-profile=srgb", "--lang=en-US",
}

// launch starts Chromium with its ends of two pipes as file descriptors 3 and 4. It ends with the pipes, so that it does not
// outlive a killed test.
func launch(path string, flags []string) (*Browser, error) {
	folder, err := os.MkdirTemp("", "browsertest-")
	if err != nil {
		return nil, err
	}
	b := &Browser{folder: folder}
	if err := b.start(path, flags); err != nil {
		b.removeFolder()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	ctx, cancel := limitedContext()
	defer cancel()
	var version struct{ UserAgent string }
	if err := b.call(ctx, "", "Browser.getVersion", nil, &version); err != nil {
		defer b.close()
		return nil, fmt.Errorf("start %s: %w\n%s", path, err, b.stderr())
	}
	b.userAgent = version.UserAgent
	return b, nil
}

func (b *Browser) start(path string, flags []string) error {
	stderr, err := os.Create(b.stderrPath())
	if err != nil {
		return err
	}
	defer stderr.Close()
	calls, callsOut, err := os.Pipe()
	if err != nil {
		return err
	}
	defer calls.Close()
	answersIn, answers, err := os.Pipe()
	if err != nil {
		callsOut.Close()
		return err
	}
	defer answers.Close()
	b.command = exec.Command(path, append(append([]string{"--user-data-dir=" + filepath.Join(b.folder, "profile")}, launchFlags...), flags...)...)
	b.command.Stderr = stderr
	b.command.ExtraFiles = []*os.File{calls, answers}
	b.pipes = [2]*os.File{callsOut, answersIn}
	if err := b.command.Start(); err != nil {
		callsOut.Close()
		answersIn.Close()
		return err
	}
	b.connection = newConnection(answersIn, callsOut)
	go b.readMessages() // until close
	return nil
}

func (b *Browser) stderrPath() string { return filepath.Join(b.folder, "stderr") }

func (b *Browser) stderr() []byte {
	text, _ := os.ReadFile(b.stderrPath())
	return text
}

func (b *Browser) closeOrReport(t testing.TB) {
	t.Helper()
	if err := b.close(); err != nil {
		t.Errorf("close Chromium: %v\n%s", err, b.stderr())
	}
}

// close ends Chromium and waits for the end of its process and of readMessages.
func (b *Browser) close() error {
	ctx, cancel := limitedContext()
	defer cancel()
	b.send("", "Browser.close", object{})
	select {
	case <-b.ended:
	case <-ctx.Done():
		b.command.Process.Kill()
	}
	err := b.command.Wait()
	for _, pipe := range b.pipes {
		pipe.Close()
	}
	<-b.ended
	b.removeFolder()
	return err
}

// removeFolder removes the profile. Chromium's helper processes may write to it a moment longer.
func (b *Browser) removeFolder() {
	ctx, cancel := limitedContext()
	defer cancel()
	for os.RemoveAll(b.folder) != nil && ctx.Err() == nil {
		time.Sleep(pollInterval)
	}
}

// limitedContext ends after the limit that tests have for anything. It is not the context of a test, which has ended when
// its clean-up begins.
func limitedContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), deadlinetest.Scale(deadlinetest.DefaultLimit))
}
