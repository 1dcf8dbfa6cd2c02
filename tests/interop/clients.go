package main

import (
	"io"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta3"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	filesystemv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta2"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta2"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"
)

// version is one of the 23, with the published client that connects to its pipe.
type version struct {
	group, name string
	connect     func() (io.Closer, error)
}

// versions has all of them.
var versions = []version{
	{"disk", "v1", closer(diskv1.NewClient)},
	{"disk", "v1beta3", closer(diskv1beta3.NewClient)},
	{"disk", "v1beta2", closer(diskv1beta2.NewClient)},
	{"disk", "v1beta1", closer(diskv1beta1.NewClient)},
	{"disk", "v1alpha1", closer(diskv1alpha1.NewClient)},
	{"filesystem", "v2alpha1", closer(filesystemv2alpha1.NewClient)},
	{"filesystem", "v1", closer(filesystemv1.NewClient)},
	{"filesystem", "v1beta2", closer(filesystemv1beta2.NewClient)},
	{"filesystem", "v1beta1", closer(filesystemv1beta1.NewClient)},
	{"filesystem", "v1alpha1", closer(filesystemv1alpha1.NewClient)},
	{"iscsi", "v1alpha2", closer(iscsiv1alpha2.NewClient)},
	{"iscsi", "v1alpha1", closer(iscsiv1alpha1.NewClient)},
	{"smb", "v1", closer(smbv1.NewClient)},
	{"smb", "v1beta2", closer(smbv1beta2.NewClient)},
	{"smb", "v1beta1", closer(smbv1beta1.NewClient)},
	{"smb", "v1alpha1", closer(smbv1alpha1.NewClient)},
	{"system", "v1alpha1", closer(systemv1alpha1.NewClient)},
	{"volume", "v2alpha1", closer(volumev2alpha1.NewClient)},
	{"volume", "v1", closer(volumev1.NewClient)},
	{"volume", "v1beta3", closer(volumev1beta3.NewClient)},
	{"volume", "v1beta2", closer(volumev1beta2.NewClient)},
	{"volume", "v1beta1", closer(volumev1beta1.NewClient)},
	{"volume", "v1alpha1", closer(volumev1alpha1.NewClient)},
}

// closer forgets the type of a client, which its methods are found without.
func closer[C io.Closer](connect func() (C, error)) func() (io.Closer, error) {
	return func() (io.Closer, error) {
		client, err := connect()
		return client, err
	}
}
