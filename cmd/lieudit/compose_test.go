package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// loadCompose reads compose.yaml with the library of the Compose Specification, all its profiles on and no variable set.
func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../compose.yaml"}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestComposeNamesExactImagesAndOpensPortsToThisMachineAlone(t *testing.T) {
	t.Parallel()
	exact := regexp.MustCompile(`:v?\d+\.\d+(\.\d+)?(-[a-z]+)?$`)
	for name, s := range loadCompose(t).Services {
		if s.Build == nil && !exact.MatchString(s.Image) {
			t.Errorf("%s: the image %s has no exact version", name, s.Image)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" || name != "lieudit" {
				t.Errorf("%s: port %s is open to %q", name, p.Published, p.HostIP)
			}
		}
		for _, network := range s.NetworksByPriority() {
			if name != "lieudit" && network != "inside" {
				t.Errorf("%s is in the network %s", name, network)
			}
		}
	}
}

func TestComposeHoldsNoPasswordAndStopsNothingTooSoon(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(?i)password|secret|_key$`)
	withPassword := regexp.MustCompile(`://[^/@]+:[^/@]+@`)
	project := loadCompose(t)
	for name, s := range project.Services {
		for variable, value := range s.Environment {
			if value == nil || *value == "" {
				continue
			}
			if secret.MatchString(strings.TrimSuffix(variable, "_FILE")) && !strings.HasPrefix(*value, "/secrets/") {
				t.Errorf("%s: %s holds a secret", name, variable)
			}
			if withPassword.MatchString(*value) {
				t.Errorf("%s: %s holds a password", name, variable)
			}
		}
	}
	for _, name := range []string{"secrets", "lieudit", "eventstore-logs", "eventstore", "postgres"} {
		if _, ok := project.Volumes[name]; !ok {
			t.Errorf("there is no volume %s", name)
		}
	}
}

func TestComposeRunsTheProgramWithoutRightsAndAsksItForItsHealth(t *testing.T) {
	t.Parallel()
	s := loadCompose(t).Services["lieudit"]
	if !s.ReadOnly || s.User != "65532:65532" || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("it is not held back: read-only %v, user %s, without %v, %v", s.ReadOnly, s.User, s.CapDrop, s.SecurityOpt)
	}
	if want := []string{"CMD", "/lieudit", "health"}; s.HealthCheck == nil || !slices.Equal(s.HealthCheck.Test, want) {
		t.Errorf("its health check is not %v", want)
	}
	for _, line := range []string{"FROM scratch", "CGO_ENABLED=0", "USER 65532:65532", "ca-certificates.crt"} {
		if !strings.Contains(s.Build.DockerfileInline, line) {
			t.Errorf("the image is made without %q", line)
		}
	}
	if demo := s.Environment["LIEUDIT_NO_DEMO"]; demo == nil || *demo != "true" {
		t.Error("a demo account is opened")
	}
	for _, needed := range []string{"secrets", "eventstore", "postgres"} {
		if _, ok := s.DependsOn[needed]; !ok {
			t.Errorf("it does not wait for %s", needed)
		}
	}
}
