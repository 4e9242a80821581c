package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is a module as go list -m describes it.
type module struct {
	Path, Version string
	Update        *struct{ Version string } // the newest release; nil if that is Version, or unknown
	Error         *struct{ Err string }     // why its releases could not be listed
}

// reportNewerReleases prints which modules that this one requires directly have a newer release. It is a report and not a
// check: a release of another project, a proxy that refuses a listing, or a machine without a network does not fail a run.
func reportNewerReleases(ctx context.Context, w io.Writer) {
	fmt.Fprintln(w, "== newer releases of the modules in go.mod")
	found, err := listDirectModules(ctx)
	if err != nil {
		fmt.Fprintln(w, "   not listed:", err)
		return
	}
	for _, line := range describeReleases(found) {
		fmt.Fprintln(w, "  ", line)
	}
}

// listDirectModules asks the module proxy about the modules that go.mod requires directly. With -e a module whose releases
// cannot be listed has an Error, and the others are described all the same.
func listDirectModules(ctx context.Context) ([]module, error) {
	proxy, err := runGo(ctx, "env", "GOPROXY")
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(proxy)) == "off" { // then go list reports every module as up to date
		return nil, errors.New("GOPROXY is off")
	}
	paths, err := directModulePaths(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := runGo(ctx, append([]string{"list", "-m", "-u", "-e", "-json=Path,Version,Update,Error"}, paths...)...)
	if err != nil {
		return nil, err
	}
	return decodeModules(listed)
}

// directModulePaths are the modules that go.mod requires and does not mark as indirect.
func directModulePaths(ctx context.Context) (paths []string, err error) {
	output, err := runGo(ctx, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var goMod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	err = json.Unmarshal(output, &goMod)
	for _, r := range goMod.Require {
		if !r.Indirect {
			paths = append(paths, r.Path)
		}
	}
	return paths, err
}

// decodeModules decodes the output of go list: consecutive JSON objects.
func decodeModules(listed []byte) (all []module, err error) {
	for d := json.NewDecoder(bytes.NewReader(listed)); d.More(); {
		var m module
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, m)
	}
	return all, nil
}

// runGo returns the standard output of a go command. Its standard error is shown.
func runGo(ctx context.Context, args ...string) ([]byte, error) {
	cmd := newCommand(ctx, append([]string{"go"}, args...)...)
	cmd.Stdout = nil
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return output, nil
}

// describeReleases returns a line for each module with a newer release, or one line if there are none, and one line for all
// modules whose releases could not be listed.
func describeReleases(all []module) (lines []string) {
	var unknown []string
	var reason string
	for _, m := range all {
		switch {
		case m.Error != nil:
			unknown, reason = append(unknown, m.Path), m.Error.Err
		case m.Update != nil:
			lines = append(lines, fmt.Sprintf("%s %s: there is %s", m.Path, m.Version, m.Update.Version))
		}
	}
	if len(unknown) > 0 {
		return append(lines, fmt.Sprintf("not listed, %d of %d: %s: %s", len(unknown), len(all), strings.Join(unknown, ", "), reason))
	}
	if len(lines) == 0 {
		lines = []string{"none"}
	}
	return lines
}

// vulnerabilityScanner finds published vulnerabilities in the parts of the standard library and of modules that this module's
// code calls. It is installed and not a tool of go.mod, whose dependencies would become this module's too.
const vulnerabilityScanner = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"

// checkVulnerabilities runs the vulnerabilityScanner on all packages. A finding is an error. If the scanner cannot be
// downloaded, or its database cannot be reached, one line reports that, and it is not an error.
func checkVulnerabilities(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "== published vulnerabilities:", vulnerabilityScanner)
	folder, err := os.MkdirTemp("", "lieudit-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	install := newCommand(ctx, "go", "install", vulnerabilityScanner)
	install.Env = append(os.Environ(), "GOBIN="+folder)
	if err := install.Run(); err != nil {
		fmt.Fprintln(w, "   NOT CHECKED: the scanner cannot be installed:", err)
		return ctx.Err()
	}
	return runScanner(ctx, w, filepath.Join(folder, "govulncheck"), "./...")
}

// The results of govulncheck: its exit status if it found something, and the beginning of its message if its database was not
// reached. Any other status except 0 means that it could not do its work.
const (
	foundVulnerabilities = 3
	databaseUnreachable  = "govulncheck: fetching vulnerabilities:"
)

// runScanner runs an installed govulncheck and shows its findings.
func runScanner(ctx context.Context, w io.Writer, command ...string) error {
	cmd := newCommand(ctx, command...)
	var findings, message bytes.Buffer
	cmd.Stdout, cmd.Stderr = &findings, &message
	err := cmd.Run()
	exit, hasExited := errors.AsType[*exec.ExitError](err)
	text := strings.TrimSpace(message.String())
	switch {
	case err == nil:
		fmt.Fprintln(w, "   none")
		return nil
	case hasExited && exit.ExitCode() == foundVulnerabilities:
		io.Copy(w, &findings)
		return errors.New("published vulnerabilities: found something")
	case hasExited && strings.HasPrefix(text, databaseUnreachable):
		fmt.Fprintln(w, "   NOT CHECKED: the database cannot be reached:", strings.TrimSpace(strings.TrimPrefix(text, databaseUnreachable)))
		return ctx.Err()
	}
	return fmt.Errorf("published vulnerabilities: %w: %s", err, text)
}
