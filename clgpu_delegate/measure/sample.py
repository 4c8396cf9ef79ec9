"""The small network of `quickstart`: an image classifier with weights by a rule, in float32.

Its bytes are stored here because writing models needs packages that may not be installed;
tests/python/test_quickstart.py builds the same model and compares the bytes.
"""

from __future__ import annotations

import base64
import zlib

_BYTES = (
    "eNrt2g+MVeWZx/F3Zu4AgyAs0OFvYEIndkx1lT/jCN73vVMkrVYEtJAGpQasHVtiWdySLdVmnNqFoiCx1J21YgpuzYKN"
    "hnW1Sy33PVfUVSL9gxWKQDXrdjMQQsdZSwrSwuzvufdc5ooYdpPdbbP7veb1nHvO8z7P857POWeAzCjn3LxPzpri3IVu"
    "hBvqBrkBOpLRN+ca6pz7urZ2pEajn8YijZkaUzUaNUYUo517qbe3d7Qrfkbv1n5dab/uV9qfW9qfe1j7TaX9pmPaz5T2"
    "M4NU9YLSrvZKtWxTlea33kad6a7Umx2/RGOUxjhLWFPq48uLv7TUZtjcsenWPpY/X621amQ08jpxh0ajxr/p3D9o3KFx"
    "Zbqevzzd2zsiXcOItE6txsTMqV7nOnKV+cdo/F1f/IChFdflR7/7Q285pjrNY9dphuIbSvHT7To2nVn3wOI1sHUO1HZo"
    "8djzrVXpXNuO1BjWe6be2HI9y990vFRvZPr9Ixr1GrNVr5TLVZWvWauOla9zeXwk7WOYxvA0b3tfreqG1N1i36qYX52O"
    "qnSu5RiS9v9nGj87R/3nz1F/SDrXrsHgovz7/S+o8D+7n6W95+6nfE/VFa9u6V64pfeD/czt/WA/dRX3fv/0WbB+xpzV"
    "T2Paz+Xps1GVxo0oXgO7b/una3l//qo0d006Mul9Vjm3XGNc2m/5fhlUvLql3IPS3JXrrul7llz5mliOUSrwExVaq7FQ"
    "oylTKrxbwY9qLNeYqTFU47Am/UjjrzUWalyicULJdmtsSp+hmRojNA4rzRaNDnunpM+npV76++J1rSo/E+X+Bqb9LZ/c"
    "4tafN+YKdzqNGZXeV+W4gekCS3HN7q0PydUXM9VV/+F8MVOKT47dd8PTt2Lp07/4PJX7GJK6ZyqucWn+ZNeW1hiX1ijH"
    "NKSjr9Ykd6CinwsrYvtiLnen05iG9Nko57SY8r3UUa4/aZrrOk/9vtgr3U2n+uoPqojti2lx7af66l9wVs7yvdYXf4Vr"
    "O3Xu+q3p6Ittdgcq6g88Z/2p7nRF/bqKnB0Vz1Lrmfgprus89ftiJ7ubTvfVH3BWbClmkms/3Ve//4esvy/+ctd2+tz1"
    "O9LRmt4vy6c5d6Cifr+z6hdj9IPpdEX92oqcrRXrbyjHtzjXdZ76Z2KvcO6m3vc/D5mz8zWXfg6U69d8yPrPxOsl2Nb7"
    "n6yvR+1ARf3qc9Wf7IrP44gz77wPPo8N6ZxyrYaKvmrKeSaV8gxN35jnynN2v+WLW5Ne9y99efHtX0h/rt1RVeN2/7ba"
    "XaLxcHe1y2j0/LTa/eon1W7ni9Xu2Req3aYZ1W5ta7Vb8efV7ja9QOfqxZjVC3xUU6nGXw06VfqzkL7f+dK4JNZ9NDbe"
    "0+kPvX5S2/r8+Kl7fff4fJz/0Nbs2mN14dDrd8XxU+f79oXDE8Xk6+Y84Wsyh2PxB0DmsNf3qONZnQ+K0/5dXvMSzc8r"
    "j1c+y5tVjFedqHpedcP8hy6Lb0x70D+y1iWrnrgm/4vun/npt71gvWS7XusXWrd+M+q45tQnyqd53/dzru22Y9u3JW97"
    "5Y/aZt+YNjRsSxbHOdcu9ZNHDlaunfnH9v/QL/naQcXuvGrDumOq96j14Hc9Njp0j8/Gtcfu861ba7Seu/KK8RrWd1bH"
    "gs5FxVhsojlRc71yWK7tyumV2/azqhVUUz0s9uohUS959eS1tR6vUq9ePatWna0h6FjUmrzWprydea3Va80Wm9U1CLoW"
    "uuaXeUwwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwOZ+J5Vs1tfT7gAMqfqe48vP3"
    "6XmXcXz48Pl//vmnK9P3gd4U+575XDJ8fVvcsHePf3LhpGTD3nn593bUh2/U1iZrZp/INo6+Ojy58On43o5O3942N1FM"
    "nLPsHX/jkMbEMmgb9D3quJ0PitP+017zbH5eeXSs3vJmFRNUJ6qeV92wZvaKuOj4Lv/qruYk/vqB/MEbh4WNy+sUuyfb"
    "7wchHJ7+46jjXnMT5dO8Lr+svclitzdvmqD5J6K2ftHx60Lzpo1xWfsWP2P1p3R+cPx8pwsjJ421/ey631wS9j3zptY4"
    "zz83c4HWtjI2jn7RH54+Xet5Oq+YoGH7WR0LOhcVY7HWd9RcrxyWK6+cQblt32oF1VQPG62HRL1E9eS1tR6vUq9BPavW"
    "1bYG1Xggak1ea7M15rXWoDVbbFbXIOhaaP4KjwkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJ"
    "JphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCC"
    "CSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphg"
    "ggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaY"
    "YIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkm"
    "mGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJ"
    "JphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCC"
    "CSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphg"
    "ggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaY"
    "YIIJJphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaYYIIJJphgggkmfywTq/nylb29Gdupdnz4uF9OT++HYc4drb2hcMOt"
    "C5JVT+wMPS0fK6x64ppYmHhh7tDrJ5NxY4/47T0tuZ6WzUlh4rrwmbtnFhSTbEveDp99akzBUmib0/dEx+18TnHa3xw0"
    "r6D5UXmC8ller5ic6iSqF1Q3N27skqTh+ufDxLaPFxa8vDKuPVaXu+jhKsXu9KtfmJKb/9DWRMeD5haUT/P2h/sPjrfY"
    "fOM99Zp/JNE2NFzfmmu8pzO5/+D3Qvf4rM7XJvd+9d3w7txhtu9j3UdzR2tf0xqvCc/tm6W13ZVs79kW5j90mdazOSom"
    "p2H7XsdyOpcoxmKt70Rzg3JYrqicOeVWX7VWK6ea6qHTeiioF7tmQVvrMatec+pZtVpsDaqxMtGagtZma4xaa05rtliv"
    "a5DTtdD8JQETTDDBBBNMMMEEE0wwwQQTTDDB5L/TxOp0zeLfB/n0fX43O70fOpy786VHk1j3/WjPpz1vekby46fOt2dG"
    "z8Blfu2x+3T8ZBw/da9vX/gde95i3ZyLQ03mi8V/79Y26Lsdt/NBcXbf2jybH5VHx+Zb3qw9q/bsqZ5XXT3XW+Mb04aG"
    "R9Z22DOU/0X37DD9thn2rvBdr60KrVtr7Li3d4byRT3bYc61S+3Y9m3JYnsv6Hla7N+Y9mDQcxTnXNvtJ498wN4f8bH9"
    "zWHJ1262/eyGdcvDnS+Nsx78rse+q7Xl7XlR/m+q75N5e9/Y+0P7WR0LOpcoxmJtTtTcoByWK6+cQblt32qpn+6o2taD"
    "9RLVk3pZbD1epV7tfWS92xqCvUu0pqC12Rqj1hq0ZovN6hoEXQt773hMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDB"
    "BBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0ww"
    "wQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0wwwQQTTDDBBBNMMMEEE0z+903MoN/Pe3sz"
    "tlPl+OhTvzu9HnXOHa29oXDDrQvsGoeelo8V7N4oTLwwp+uXjBt7xG/vacn1tGxOChPXhc/cPbOgGDm+HT771JiCpdA2"
    "p++Jjtv5nOK0vzloXkHz7V4Pymd5vWJyqpOoXlDd3LixS5KG658PE9s+Xljw8kq753IXPVxVsHt69QtTcrJOdNzuvYLy"
    "ad7+cP/B8Rabl73mH7H7JDRc35qzZ+D+g9+ze0Dna5N7v/pueHfuMNv3usdyR2tfs3syPLdvVs7ume092+z50Ho2R8Xk"
    "NGzf61hO5+x5tVjrO9Fcu08tV1TOnHKrr1qrlVNNu/+sh4I9u+rJnmHrMatec+pZtVpsDaqx0u7foLXZGqPWmtOaLdbr"
    "GuR0LTR/ScAEE0wwwQQTTP5nTWx9F+3nz4eVnysOpNejwbl9z7yZDF/fFTfsnReeXPh0smHvnvx7OzrDN2pXJmtmr/CN"
    "o1/U8UnJezvqQ3vb7kQxcc6yvwg3Dnm8+PcfbYO+23Gv80Fx2p8UNM/mR+XRsU7Lm1VMUB2r51U3rJl9Ii46fl14ddcP"
    "k/jrwfHgjevDxuX3KXae7/eDJByePt2Oa86eRPni8PVtYVn7FjuWb960UfNXJNr6Rcd3heZNE5Jl7U1hxupXdP6B+PnO"
    "jjBy0gbbz677zZNh3zOfsx78czP3a221yne18v/Yeo2KCRq273VMvV+dKCYo1uZEzQ3KYbnyyhmU2/a9aqmfJvUwIagH"
    "6yWqJ/Wy0XrMqtegnq13rzyqMTjRmoLWZmuMWmvQmi3W6xoox3W6Zic8JphgggkmmGCCCSaYYIIJJphgggkmmGCCCSaY"
    "YIIJJphgggkmmPxXTWzOJ0+Wfh+g40/k9xN+We4nw++v8vtGmGDyxzOxa9PW+6f1fuz79HMDXEb/d67Y32Dn3rn535Ov"
    "1Pw+Lnn29rCgfkey5NlD+V0THg8v7n4wCRd/y9/6hT06/olk14TGsOVf/jVRTPz6/HvDsA3/WPz5oW3QdzvudT4oTvuf"
    "CJpn86Py6NjjljermKA6Vs+rbggX90+6Bt0Sxh755+RTK8bEulkbw8rH/0axt/uN3/55eDN+2o5rzqFE+eJXau4Oe5Zu"
    "s2P5ua88pfnfSrT1XYPeCnNfuTTZs7QlNE7br/OPRHdqTVj32y22n/3bGfnwzs13Wg/+0tVHtbahyjdP+V+1XqNigobt"
    "ex1T7/MSxQTF2pyouUE5LFdeOYNy275XLfXToh4uDerBeonqSb08ZT1m1WtQz9a7Vx7VGJNoTUFrszVGrTVozRbrdQ2U"
    "4xZds/4BE0wwwQQTTDDBBBNMMPm/aVL+m1mm+J9z/wG5nWt2"
)


def content() -> bytes:
    """The bytes of the .tflite file: input (1, 256, 256, 3), output (1, 10).

    Its nodes are those of a MobileNet, and a FAKE_QUANT that training has left, which has no
    kernels.
    """
    return zlib.decompress(base64.b64decode(_BYTES))
