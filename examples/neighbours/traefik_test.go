package neighbours

import (
	"net/netip"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
)

// Traefik itself is not run: no Debian has it. The file is YAML, has no other
// fields than these of Traefik v3, and trusts prefixes.
func TestTraefik(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("traefik.yml")
	if err != nil {
		t.Fatal(err)
	}
	var static struct {
		EntryPoints map[string]struct {
			Address          string
			ForwardedHeaders struct {
				TrustedIPs []string `yaml:"trustedIPs"`
			} `yaml:"forwardedHeaders"`
		} `yaml:"entryPoints"`
	}
	if err := yaml.UnmarshalWithOptions(text, &static, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
	trusted := static.EntryPoints["web"].ForwardedHeaders.TrustedIPs
	if len(trusted) != 1 || static.EntryPoints["web"].Address == "" {
		t.Errorf("got the entry points %v, want web with an address and one trusted prefix", static.EntryPoints)
	}
	for _, prefix := range trusted {
		if _, err := netip.ParsePrefix(prefix); err != nil {
			t.Error(err)
		}
	}
}
