package callback_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// Two senders behind one guard number their events independently. An event of one sender
// is not done for the other, and one sender cannot use up the ids of the other.
func TestTwoAccounts(t *testing.T) {
	t.Parallel()
	named := func(name string) callback.Preset {
		p := callback.Alipay()
		p.Name = name
		return p
	}
	wechat := func(merchant string) string {
		return `{"event_type":"TRANSACTION.SUCCESS","resource":{` + merchant + `"out_trade_no":"o1"}}`
	}
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		type account struct {
			preset callback.Preset
			body   string
			header []string
		}
		for name, accounts := range map[string][]account{
			"senders": {
				{callback.StandardWebhooks("acme"), "anything", []string{"Webhook-Id", "1"}},
				{callback.StandardWebhooks("other"), "anything", []string{"Webhook-Id", "1"}},
			},
			"merchants": {
				{callback.WeChatPay(), wechat(`"mchid":"m1",`), nil},
				{callback.WeChatPay(), wechat(`"mchid":"m2",`), nil},
				{callback.WeChatPay(), wechat(`"sp_mchid":"m3","sub_mchid":"m1",`), nil},
				{callback.WeChatPay(), wechat(`"sp_mchid":"m4","sub_mchid":"m1",`), nil},
				{callback.WeChatPay(), wechat(""), nil},
			},
			"names": {{named("alipay-1"), alipayForm, nil}, {named("alipay-2"), alipayForm, nil}},
		} {
			for _, a := range accounts {
				s := &shop{}
				h := endpoint(t, a.preset, guard(t, rdb, prefix+name, idempotency.Options{}), s, callback.Options{})
				for range 2 {
					deliver(h, a.body, a.header...).is(t, a.preset.Done)
				}
				s.once(t, 1)
			}
		}
	})
}

// A preset for a sender without a name would be the preset of all senders.
func TestSenderIsNamed(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	for sender, fine := range map[string]bool{"": false, "acme": true, "a.c": false, "12345678901234567890123": true, "123456789012345678901234": false} {
		if _, err := callback.New(callback.StandardWebhooks(sender), g, demoVerify, (&shop{}).book, nil); (err == nil) != fine {
			t.Errorf("%q: got %v, want it accepted: %t", sender, err, fine)
		}
	}
}
